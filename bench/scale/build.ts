/**
 * Builds a log through `Log.append()` in large groups, without HTTP and a server, as far as a log
 * of 10^8 batches needs. Sealing and merging run on their threads, as they do beside a server.
 */
import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import { COMMIT_BATCHES_MAX, TAIL_ROTATE_BYTES } from "../../src/limits.ts";
import { type Log, openLog } from "../../src/log/log.ts";
import { sealThreads } from "../../src/log/sealing/seal_thread.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { sealedPart, tailBytes } from "../support/log_files.ts";
import { type BenchOptions, oneOf, progress } from "../support/options.ts";
import { megabytes, rounded } from "../support/report.ts";
import { Deployment, withDeployment } from "../support/deployment.ts";
import { type BuiltLog, type Figures, readFacts, writeFacts } from "./built_log.ts";
import {
  batchEventsOf,
  BulkBatches,
  OLD_STREAMS_MAX,
  oldBatch,
  oldStreamName,
  PAGE_EVENTS,
  type Shape,
  SHAPES,
} from "./history.ts";

/** Number of remembered positions in the history. */
const POSITIONS = 1000;
const PROGRESS_GROUPS = 1000;
/** Batch numbers reserved for one filling of the tail. */
const TAIL_BATCHES_MAX = 500_000;

/** Runs `use` with the log of a deployment that no server holds. */
async function withLog<T>({ folder }: Deployment, use: (log: Log) => Promise<T>): Promise<T> {
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
  return await use(log).finally(() => log.close());
}

/** Appends batches in one commit. @returns the last event of each. */
async function append(log: Log, bodies: Iterable<Uint8Array>): Promise<string[]> {
  while (log.sealer.isBehind) await log.sealer.nextSeal;
  const prepared = Array.from(bodies, (body) => prepareBatch(body));
  return (await log.append(prepared)).map(({ last_event_id }) => last_event_id);
}

/** Runs `use` with a log, which is built if it was not kept. Without `--keep`, it is removed. */
export async function withBuiltLog<T>(
  options: BenchOptions,
  events: number,
  use: (log: BuiltLog) => Promise<T>,
): Promise<T> {
  const { own: { keep, shape = "batch" } } = options;
  const run = async (deployment: Deployment) => {
    const facts = await readFacts(deployment);
    if (facts !== null) return await use({ deployment, facts });
    return await use(await buildLog(deployment, oneOf("--shape", SHAPES, shape), events));
  };
  if (keep === undefined) return await withDeployment(options, run);
  const folder = join(keep, `${shape}-${events}`);
  await mkdir(folder, { recursive: true });
  return await run(await Deployment.at(folder, options));
}

/** Builds a log of `events` events, nearly all of them sealed. */
async function buildLog(
  deployment: Deployment,
  shape: Shape,
  events: number,
): Promise<BuiltLog> {
  const oldCount = Math.min(OLD_STREAMS_MAX, Math.ceil(events / 10));
  const batchEvents = batchEventsOf(shape);
  const batches = Math.ceil((events - oldCount) / batchEvents);
  const groupBatches = Math.ceil(COMMIT_BATCHES_MAX / batchEvents);
  const everyBatches = Math.max(1, Math.floor(batches / POSITIONS));
  const bulk = new BulkBatches(shape);
  const oldStreams: Record<string, string> = {};
  const positions: string[] = [];
  progress(`building ${events} events, ${shape}`);
  const startMs = performance.now();
  await withLog(deployment, async (log) => {
    for (let number = 0; number < oldCount; number++) {
      const [id] = await append(log, [Buffer.from(JSON.stringify(oldBatch(number)))]);
      oldStreams[oldStreamName(number)] = id!;
    }
    for (let first = 0; first < batches; first += groupBatches) {
      const count = Math.min(groupBatches, batches - first);
      const numbers = Array.from({ length: count }, (_, place) => first + place);
      const ids = await append(log, numbers.values().map((number) => bulk.body(number)));
      positions.push(...ids.filter((_, place) => (first + place) % everyBatches === 0));
      if (first / groupBatches % PROGRESS_GROUPS === 0) progress(`${first} batches`);
    }
  });
  const seconds = (performance.now() - startMs) / 1000;
  const log: BuiltLog = {
    deployment,
    facts: {
      shape,
      bulkBatches: batches,
      bulkEvents: batches * batchEvents,
      oldStreams,
      positions,
      figures: {
        "append while building events/s": Math.round(events / seconds),
        ...await sealRest(deployment),
      },
      nextBatch: batches,
      endAfter: positions.at(-1)!,
      askings: 0,
    },
  };
  await writeFacts(log);
  return log;
}

/** Runs `service seal` on the part that is not sealed yet. */
async function sealRest(deployment: Deployment): Promise<Figures> {
  const before = await sealedPart(deployment);
  const { tookMs, peakBytes } = await deployment.run(["seal"]);
  const sealed = (await sealedPart(deployment)).events - before.events;
  return {
    "seal: events": sealed,
    "seal: events/s": Math.round(sealed / tookMs * 1000),
    "seal peak MB": megabytes(peakBytes),
  };
}

/** Appends until the tail has the given size, one batch per commit. */
export async function fillTail(log: BuiltLog, wantedBytes: number): Promise<void> {
  const { deployment, facts } = log;
  if (tailBytes(deployment) >= wantedBytes) return;
  progress(`filling the tail to ${rounded(wantedBytes / 1e6, 1)} MB`);
  const bulk = new BulkBatches(facts.shape);
  const lastIds: string[] = [];
  const first = facts.nextBatch;
  facts.nextBatch += TAIL_BATCHES_MAX;
  await writeFacts(log);
  await withLog(deployment, async (opened) => {
    while (tailBytes(deployment) < wantedBytes) {
      const [id] = await append(opened, [bulk.body(first + lastIds.length)]);
      lastIds.push(id!);
    }
  });
  facts.endAfter = lastIds.at(-1 - Math.ceil(PAGE_EVENTS / batchEventsOf(facts.shape))) ??
    facts.positions.at(-1)!;
  await writeFacts(log);
}
