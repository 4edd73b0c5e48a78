/** `seal`: moves everything that is committed into immutable Parquet segments. */
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { fileStorage } from "../log/file_storage.ts";
import { openLog } from "../log/log.ts";
import type { SegmentEntry } from "../log/manifest.ts";
import { requireSupported } from "./capability.ts";
import type { Config } from "./config.ts";
import { operationalError } from "./exit.ts";
import { takeWriterLock } from "./writer_lock.ts";

export interface SealOptions {
  /** Takes sentences for the operator. */
  report: (line: string) => void;
}

/**
 * Seals the log offline, as its writer.
 * @throws {CommandError} exit status 1: another process is the writer, or there is nothing to seal;
 *   4: a mode or an anchor that is not supported.
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the log.
 */
export async function seal(config: Config, { report }: SealOptions): Promise<void> {
  requireSupported(config, "seal");
  const logDir = join(config.dataDir, "log");
  const lock = await takeWriterLock(logDir);
  try {
    const log = await openLog({
      storage: fileStorage(logDir),
      clockMs: Date.now,
      randomBytes: (into) => void randomFillSync(into),
      listener: { report, sealed: () => {}, batch: () => {}, committed: () => {} },
    });
    try {
      if (!log.hasUnsealed) throw operationalError(`${logDir}: there is nothing to seal`);
      await log.seal((segment) => report(sealedLine(segment)));
    } finally {
      await log.close();
    }
  } finally {
    lock.release();
  }
}

function sealedLine({ path, events, head }: SegmentEntry): string {
  return `sealed ${path} (${events} events, head ${head})`;
}
