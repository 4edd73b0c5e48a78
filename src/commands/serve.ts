/**
 * `serve` runs a log's writer behind HTTP on a Unix socket. It acquires the writer lock, the
 * log and the socket, and releases them in reverse order, so that a free lock means a closed log.
 */
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import { statSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import process from "node:process";
import { clearInterval, setInterval } from "node:timers";
import { createHandler } from "../api/handler.ts";
import { refusalResponse } from "../api/responses.ts";
import { TAIL_ROTATE_BYTES } from "../limits.ts";
import { fileStorage } from "../log/storage/file_storage.ts";
import { decodeThread } from "../log/segment/row_group_decoder.ts";
import { OWNERSHIP_CHECK_MS } from "../log/storage/owned_storage.ts";
import { errorCode } from "../log/storage/storage.ts";
import { describeError } from "../log/storage/system_error.ts";
import { sealThreads } from "../log/sealing/seal_thread.ts";
import { listen, type ListenOptions } from "../http/server.ts";
import { type EventLogService, openEventLog } from "../service/event_log.ts";
import { watchClock } from "./clock_watch.ts";
import type { Config } from "./config.ts";
import { Counters } from "./counters.ts";
import { entryKind } from "./deployment.ts";
import { operationalError } from "./exit.ts";
import { openToOthers } from "./ownership.ts";
import { counted } from "./progress.ts";
import { runAsWriter } from "./writer_lock.ts";

/** What the process creates belongs to its user alone, the socket from its first moment. */
const UMASK = 0o077;

export interface ServeOptions {
  report: (line: string) => void;
  /** Shuts the service down. */
  stop: AbortSignal;
  /** Called once the service accepts requests. */
  onReady?: () => void;
  /** Tail size that triggers rotation and sealing; default `TAIL_ROTATE_BYTES`. */
  rotateBytes?: number;
}

/**
 * Serves until it is stopped, then shuts down cleanly.
 * @throws {CorruptLogError} if committed bytes are damaged or missing; nothing was changed.
 */
export async function serve(config: Config, options: ServeOptions): Promise<void> {
  await runAsWriter("serve", config, (logDir) => {
    process.umask(UMASK);
    for (const fault of openToOthers(config)) options.report(fault);
    return serveFolder(logDir, config, options);
  });
}

async function serveFolder(
  logDir: string,
  { socketPath: path, token, replay }: Config,
  { report, stop, onReady, rotateBytes = TAIL_ROTATE_BYTES }: ServeOptions,
): Promise<void> {
  const counters = new Counters();
  let sizes = () => ({});
  // The signal's default action would end the process.
  process.on("SIGUSR2", () => report(counters.line(sizes())));
  const log = await openEventLog({
    storage: counters.ofSyncs(fileStorage(logDir)),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report,
    decoder: decodeThread(),
    sealing: { maker: sealThreads(logDir), rotateBytes },
  });
  sizes = () => log.size;
  const ended = Promise.withResolvers<void>();
  stop.addEventListener("abort", () => ended.resolve());
  const findLoss = async () => {
    const loss = await log.findLoss();
    if (loss === null) return;
    ended.resolve();
    throw operationalError(`${logDir}/${loss}; stopped, nothing more was acknowledged`);
  };
  const lookAtClock = watchClock(Date.now, () => performance.now(), report);
  const timer = setInterval(() => {
    void findLoss().catch(() => {});
    lookAtClock(log.frontier);
  }, OWNERSHIP_CHECK_MS);
  try {
    if (stop.aborted) return;
    report(opened(log.size));
    lookAtClock(log.frontier);
    const onResponse = counters.addResponse;
    const handler = createHandler({ log, token, replay, report, onResponse });
    await findLoss();
    await clearSocketPath(path);
    report(`serving ${path}`);
    const server = await bind(
      { path, handler, refusal: refusalResponse, report, mayReopen: findLoss },
    );
    onReady?.();
    await ended.promise;
    report("shutting down");
    log.endFollowers();
    await server.close();
    await findLoss();
  } finally {
    clearInterval(timer);
    await log.close();
  }
}

function opened({ log_events, segments, tail_bytes }: EventLogService["size"]): string {
  const events = `a log of ${counted(log_events)} events`;
  return `opened ${events}; segments: ${segments}, tail: ${counted(tail_bytes)} bytes`;
}

/** Starts the server. @throws {CommandError} with exit status 1 if the socket cannot be bound. */
async function bind(options: ListenOptions): ReturnType<typeof listen> {
  try {
    return await listen(options);
  } catch (error) {
    const folder = dirname(options.path);
    // Node reports EACCES for a missing directory.
    const reason = statSync(folder, { throwIfNoEntry: false }) === undefined
      ? `${folder}: no such directory; create it, or set [server] socket`
      : describeError(error);
    throw operationalError(`${options.path}: cannot be bound: ${reason}`, error);
  }
}

/**
 * Removes a stale socket, one that refuses connections. Leaves other sockets and files alone.
 * @throws {CommandError} with exit status 1 if the path is in use.
 */
async function clearSocketPath(path: string): Promise<void> {
  const kind = entryKind(path);
  if (kind === null) return;
  if (kind !== "socket") {
    throw operationalError(`${path}: exists and is not a socket; move it, or set [server] socket`);
  }
  const connection = connect({ path });
  try {
    // A Unix socket accepts or refuses at once.
    await once(connection, "connect");
  } catch (error) {
    if (errorCode(error) === "ECONNREFUSED") return await unlink(path);
    throw operationalError(
      `${path}: cannot determine whether a service is listening on this socket: ` +
        `${describeError(error)}; remove the socket if no process is listening on it`,
      error,
    );
  } finally {
    connection.destroy();
  }
  throw operationalError(`${path}: another service is listening on this socket; stop it first`);
}
