/** `seal`: moves everything that is committed into immutable Parquet segments. */
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { fileStorage } from "../log/file_storage.ts";
import { type Log, openLog } from "../log/log.ts";
import type { SegmentEntry } from "../log/manifest.ts";
import { requireSupported } from "./capability.ts";
import type { Config } from "./config.ts";
import { operationalError } from "./exit.ts";
import { startProgress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";
import { takeWriterLock } from "./writer_lock.ts";

/**
 * Seals the log offline, as its writer.
 * @throws {CommandError} exit status 1: another process is the writer, or there is nothing to seal;
 *   4: a mode or an anchor that is not supported.
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the log.
 */
export async function seal(config: Config, terminal: Terminal): Promise<void> {
  requireSupported(config, "seal");
  const logDir = join(config.dataDir, "log");
  const lock = await takeWriterLock(logDir);
  try {
    const log = await openLog({
      storage: fileStorage(logDir),
      clockMs: Date.now,
      randomBytes: (into) => void randomFillSync(into),
      listener: { report: terminal.report, sealed: () => {}, batch: () => {}, committed: () => {} },
    });
    try {
      if (!log.hasUnsealed) throw operationalError(`${logDir}: there is nothing to seal`);
      await sealLog(log, terminal);
    } finally {
      await log.close();
    }
  } finally {
    lock.release();
  }
}

async function sealLog(log: Log, terminal: Terminal): Promise<void> {
  const progress = startProgress(terminal, (events) => `sealed ${events} events`);
  let events = 0;
  const onEvents = (more: number) => progress.update(events += more);
  const onSegment = (segment: SegmentEntry) => {
    progress.end();
    terminal.report(sealedLine(segment));
  };
  try {
    await log.seal(onSegment, { onEvents });
  } finally {
    progress.end();
  }
}

function sealedLine({ path, events, head }: SegmentEntry): string {
  return `sealed ${path} (${events} events, head ${head})`;
}
