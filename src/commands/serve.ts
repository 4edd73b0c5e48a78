/**
 * `serve`: the one writer of a log, behind HTTP on a Unix socket. What is taken first is given up
 * last: the writer lock, then the log, then the socket. So whoever finds the lock free finds a log
 * whose every commit has its outcome.
 */
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import type { PreparedBatch } from "../event/types.ts";
import { createHandler } from "../api/handler.ts";
import { refusalResponse } from "../api/responses.ts";
import type { HttpServer } from "../http/message.ts";
import { TAIL_ROTATE_BYTES } from "../limits.ts";
import { fileStorage } from "../log/storage/file_storage.ts";
import { sealThread } from "../log/sealing/seal_thread.ts";
import { listen, type ListenOptions } from "../http/server.ts";
import { Admission } from "../service/admission.ts";
import { BatchPreparer } from "../service/batch_preparer.ts";
import { type EventLogService, openEventLog } from "../service/event_log_service.ts";
import { requireSupported } from "./capability.ts";
import type { Config } from "./config.ts";
import { operationalError } from "./exit.ts";
import { boundHeap } from "./heap_bounds.ts";
import { catchSignals, type ShutdownSignals } from "./signals.ts";
import { clearSocketPath } from "./stale_socket.ts";
import { describeError } from "./system_error.ts";
import { takeWriterLock } from "./writer_lock.ts";

export interface ServeOptions {
  /** Takes sentences for the operator. */
  report: (line: string) => void;
  /** Called once requests are answered. */
  onReady?: () => void;
  /** Size at which the tail is rotated and sealed; `TAIL_ROTATE_BYTES` if absent. */
  rotateBytes?: number;
  /** See `catchSignals()`; 0 if absent: every signal counts. */
  signalEchoMs?: number;
}

/**
 * Serves until SIGINT or SIGTERM, then shuts down cleanly.
 * @throws {CommandError} exit status 1 or 4.
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the log.
 */
export async function serve(config: Config, options: ServeOptions): Promise<void> {
  requireSupported(config, "serve");
  boundHeap();
  const signals = catchSignals(options.report, options.signalEchoMs);
  const logDir = join(config.dataDir, "log");
  try {
    const lock = await takeWriterLock(logDir);
    try {
      await serveFolder(logDir, config, options, signals);
    } finally {
      lock.release();
    }
  } finally {
    signals.release();
  }
}

async function serveFolder(
  logDir: string,
  config: Config,
  options: ServeOptions,
  signals: ShutdownSignals,
): Promise<void> {
  const { report, rotateBytes = TAIL_ROTATE_BYTES } = options;
  const preparer = new BatchPreparer();
  const log = await openEventLog({
    storage: fileStorage(logDir),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report,
    sealing: { maker: sealThread(logDir), rotateBytes },
  });
  try {
    const prepare = (body: Uint8Array) => preparer.prepare(body);
    if (!signals.isRequested) await serveLog(config, { log, prepare, ...options }, signals);
  } finally {
    try {
      await log.close();
    } finally {
      await preparer.close();
    }
  }
}

/** What requests are answered with. */
interface Served {
  log: EventLogService;
  prepare: (body: Uint8Array) => PreparedBatch | Promise<PreparedBatch>;
}

async function serveLog(
  config: Config,
  { log, prepare, report, onReady }: ServeOptions & Served,
  signals: ShutdownSignals,
): Promise<void> {
  const { socketPath: path, token, replay } = config;
  const handler = createHandler({
    log,
    token,
    replay,
    admission: new Admission(),
    prepare,
    report,
  });
  await clearSocketPath(path);
  report(`serving ${path}`);
  const server = await bind({ path, handler, refusal: refusalResponse, report });
  onReady?.();
  await signals.requested;
  report("shutting down");
  log.endFollowers();
  await server.close();
}

/** @throws {CommandError} exit status 1: the socket cannot be made. */
async function bind(options: ListenOptions): Promise<HttpServer> {
  try {
    return await listen(options);
  } catch (error) {
    throw operationalError(`${options.path}: cannot be bound: ${describeError(error)}`, error);
  }
}
