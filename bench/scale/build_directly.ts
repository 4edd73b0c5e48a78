/**
 * Appends through `Log.append()` in large groups, without HTTP and a server, as far as a log of
 * 10^8 batches needs. Sealing and merging run on their threads, as they do beside a server.
 */
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import { COMMIT_BATCHES_MAX, TAIL_ROTATE_BYTES } from "../../src/limits.ts";
import { openLog } from "../../src/log/log.ts";
import { sealThreads } from "../../src/log/sealing/seal_thread.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { progress } from "../support/options.ts";
import { batchesPerPosition, type BuiltHistory } from "./built_log.ts";
import { bodyOf, BulkBatches, oldBatch, oldStreamName } from "./history.ts";

const PROGRESS_GROUPS = 1000;

/** Appends to the log of the deployment in `folder`, which no server holds. */
export async function buildDirectly(
  folder: string,
  oldStreams: number,
  batches: number,
): Promise<BuiltHistory> {
  const logDir = join(folder, "data", "log");
  const log = await openLog({
    storage: fileStorage(logDir),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report: progress,
    sealing: {
      maker: sealThreads(logDir),
      rotateBytes: TAIL_ROTATE_BYTES,
    },
  });
  const startMs = performance.now();
  /** Appends `count` batches. @returns the last event of each. */
  const append = async (count: number, bodyAt: (number: number) => Uint8Array) => {
    while (log.sealer.isBehind) await log.sealer.nextSeal;
    const prepared = Array.from({ length: count }, (_, number) => prepareBatch(bodyAt(number)));
    return (await log.append(prepared)).map(({ last_event_id }) => last_event_id);
  };
  const oldIds = await append(oldStreams, (number) => bodyOf(oldBatch(number)));
  const old = Object.fromEntries(oldIds.map((id, number) => [oldStreamName(number), id]));
  const bulk = BulkBatches.of("tiny");
  const every = batchesPerPosition(batches);
  const positions: string[] = [];
  for (let first = 0; first < batches; first += COMMIT_BATCHES_MAX) {
    const count = Math.min(COMMIT_BATCHES_MAX, batches - first);
    const ids = await append(count, (number) => bulk.body(first + number));
    positions.push(...ids.filter((_, number) => (first + number) % every === 0));
    if (first / COMMIT_BATCHES_MAX % PROGRESS_GROUPS === 0) progress(`${first} batches`);
  }
  const seconds = (performance.now() - startMs) / 1000;
  await log.close();
  const figures = { "append while building events/s": Math.round(batches / seconds) };
  return { old, batches, positions, figures };
}
