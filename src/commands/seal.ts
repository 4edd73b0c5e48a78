/**
 * `seal`: moves everything that is committed into immutable Parquet segments. SIGINT or SIGTERM
 * stops it after the current commit: pending files that are sealed stay so, and the next run
 * continues behind them.
 */
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { fileStorage } from "../log/storage/file_storage.ts";
import { type Log, openLog, SILENT_LISTENER } from "../log/log.ts";
import type { SegmentEntry } from "../log/segment/manifest.ts";
import { requireSupported } from "./capability.ts";
import type { Config } from "./config.ts";
import { operationalError } from "./exit.ts";
import { boundHeap } from "./heap_bounds.ts";
import { startProgress } from "./progress.ts";
import { catchSignals, type ShutdownSignals } from "./signals.ts";
import type { Terminal } from "./terminal.ts";
import { takeWriterLock } from "./writer_lock.ts";

/**
 * Seals the log offline, as its writer. Returns when all is sealed, or at the first signal.
 * @throws {CommandError} exit status 1: another process is the writer, or there is nothing to seal;
 *   4: a mode or an anchor that is not supported.
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the log.
 */
export async function seal(config: Config, terminal: Terminal): Promise<void> {
  requireSupported(config, "seal");
  boundHeap();
  const signals = catchSignals(terminal.report);
  const logDir = join(config.dataDir, "log");
  try {
    const lock = await takeWriterLock(logDir);
    try {
      await sealFolder(logDir, terminal, signals);
    } finally {
      lock.release();
    }
  } finally {
    signals.release();
  }
}

async function sealFolder(
  logDir: string,
  terminal: Terminal,
  signals: ShutdownSignals,
): Promise<void> {
  const log = await openLog({
    storage: fileStorage(logDir),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    listener: { ...SILENT_LISTENER, report: terminal.report },
  });
  try {
    if (!log.hasUnsealed) throw operationalError(`${logDir}: there is nothing to seal`);
    const isDone = !signals.isRequested && await sealLog(log, terminal, signals);
    if (!isDone) terminal.report("stopped before all was sealed; the next seal goes on from here");
  } finally {
    await log.close();
  }
}

/** @returns false when a signal stopped it. */
async function sealLog(log: Log, terminal: Terminal, signals: ShutdownSignals): Promise<boolean> {
  const progress = startProgress(terminal, (events) => `sealed ${events} events`);
  let events = 0;
  const onEvents = (more: number) => progress.update(events += more);
  const onSegment = (segment: SegmentEntry) => {
    progress.end();
    terminal.report(sealedLine(segment));
  };
  try {
    return await log.seal(onSegment, { onEvents, isStopped: () => signals.isRequested });
  } finally {
    progress.end();
  }
}

function sealedLine({ path, events, head }: SegmentEntry): string {
  return `sealed ${path} (${events} events, head ${head})`;
}
