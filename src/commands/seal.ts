/**
 * `seal` moves all committed events into immutable Parquet segments. SIGINT or SIGTERM stops it
 * after the current commit; the next run continues from there.
 */
import { randomFillSync } from "node:crypto";
import { fileStorage } from "../log/storage/file_storage.ts";
import { type Log, openLog } from "../log/log.ts";
import type { SegmentEntry } from "../log/segment/manifest.ts";
import { sumOf } from "../sum.ts";
import type { Config } from "./config.ts";
import { operationalError } from "./exit.ts";
import { counted, startProgress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";
import { runAsWriter } from "./writer_lock.ts";

/**
 * Seals the log offline. Returns when everything is sealed, or once it is stopped.
 * @throws {CommandError} also if there is nothing to seal.
 * @throws {CorruptLogError} if committed bytes are damaged or missing; nothing was changed.
 */
export async function seal(config: Config, terminal: Terminal): Promise<void> {
  await runAsWriter("seal", config, async (logDir) => {
    const log = await openLog({
      storage: fileStorage(logDir),
      clockMs: Date.now,
      randomBytes: (into) => void randomFillSync(into),
      report: terminal.report,
    });
    try {
      const events = sumOf(log.files.unsealed, ({ events }) => events);
      if (events === 0) throw operationalError(`${logDir}: there is nothing to seal`);
      await sealLog(log, events, terminal);
    } finally {
      await log.close();
    }
  });
}

async function sealLog(log: Log, unsealed: number, terminal: Terminal): Promise<void> {
  const { stop } = terminal;
  const progress = startProgress(terminal, "sealed");
  let done = 0;
  const onEvents = (more: number) => {
    stop.throwIfAborted();
    progress.update(done += more, unsealed);
  };
  const sealed: SegmentEntry[] = [];
  const onSegment = (segment: SegmentEntry) => {
    progress.end();
    sealed.push(segment);
    const { path, events, head } = segment;
    terminal.report(`sealed ${path} (${events} events, head ${head})`);
  };
  let isStopped = false;
  try {
    stop.throwIfAborted();
    await log.seal(onSegment, { onEvents });
  } catch (error) {
    if (error !== stop.reason) throw error;
    isStopped = true;
  } finally {
    progress.end();
    const events = counted(sumOf(sealed, ({ events }) => events));
    const sum = `sealed ${events} events in total; new segments: ${sealed.length}`;
    if (sealed.length > 0) terminal.report(sum);
  }
  if (isStopped) {
    terminal.report("stopped before everything was sealed; run seal again to continue");
  }
}
