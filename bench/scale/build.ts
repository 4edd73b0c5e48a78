/**
 * Builds a log through `Log.append()` in large groups, without HTTP and a server, as far as a log
 * of 10^8 batches needs. Sealing and merging run on their threads, as they do beside a server. What
 * requests need to know is stored in the deployment's directory, so that a kept log can be used
 * again.
 */
import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import { COMMIT_BATCHES_MAX, TAIL_ROTATE_BYTES } from "../../src/limits.ts";
import { type Log, openLog } from "../../src/log/log.ts";
import { sealThreads } from "../../src/log/sealing/seal_thread.ts";
import { readManifest } from "../../src/log/segment/manifest.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { Deployment, withDeployment } from "../support/deployment.ts";
import { logFolder, tailBytes } from "../support/log_files.ts";
import { type BenchOptions, oneOf, progress } from "../support/options.ts";
import { rounded } from "../support/report.ts";
import { fabricateLog } from "./fabricate.ts";
import {
  batchEventsOf,
  bulkBatch,
  OLD_STREAM,
  type Shape,
  SHAPES,
  singleBatch,
} from "./history.ts";

/** Number of remembered positions in the history. */
const POSITIONS = 1000;
const PROGRESS_GROUPS = 1000;
/** Batches of a fabricated segment, as many as a segment of tiny events has. */
const STUB_BATCHES_MAX = 262_144;
/** Runs of this many segments cover all fabricated ones. */
const RUN_SEGMENTS = 8;
const FACTS_FILE = "scale.json";

export interface LogFacts {
  shape: Shape;
  /** Batches of the bulk whose rows the log has. */
  bulkBatches: number;
  bulkEvents: number;
  /** Ids of the last events in batches spread evenly over the bulk, in order. */
  positions: string[];
}

export interface BuiltLog {
  deployment: Deployment;
  facts: LogFacts;
}

/** Returns the event at a given share of the bulk. */
export function positionAt({ positions }: LogFacts, share: number): string {
  return positions[Math.floor(positions.length * share)]!;
}

/** Runs `use` with the log of a deployment that no server holds. */
async function withLog<T>(deployment: Deployment, use: (log: Log) => Promise<T>): Promise<T> {
  const logDir = logFolder(deployment);
  const log = await openLog({
    storage: fileStorage(logDir),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report: progress,
    sealing: { maker: sealThreads(logDir), rotateBytes: TAIL_ROTATE_BYTES },
  });
  return await use(log).finally(() => log.close());
}

/** Appends batches in one commit. @returns the last event of each. */
async function append(log: Log, batches: object[]): Promise<string[]> {
  while (log.sealer.isBehind) await log.sealer.nextSeal;
  const prepared = batches.map((batch) => prepareBatch(Buffer.from(JSON.stringify(batch))));
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
    const path = join(deployment.folder, FACTS_FILE);
    if (!existsSync(path)) {
      progress(`building ${events} events, ${shape}`);
      const facts = await buildLog(deployment, oneOf("--shape", SHAPES, shape), events);
      await writeFile(path, JSON.stringify(facts));
    }
    return await use({ deployment, facts: JSON.parse(await readFile(path, "utf8")) });
  };
  if (keep === undefined) return await withDeployment(options, run);
  const folder = join(keep, `${shape}-${events}`);
  await mkdir(folder, { recursive: true });
  return await run(await Deployment.at(folder, options));
}

/** Builds a log of `events` events, all of them sealed. */
async function buildLog(deployment: Deployment, shape: Shape, events: number): Promise<LogFacts> {
  const isFabricated = shape === "fabricated";
  const batchEvents = batchEventsOf(shape);
  const batches = isFabricated ? 1 : Math.ceil(events / batchEvents);
  const groupBatches = Math.ceil(COMMIT_BATCHES_MAX / batchEvents);
  const everyBatches = Math.max(1, Math.floor(batches / POSITIONS));
  const positions: string[] = [];
  await withLog(deployment, async (log) => {
    await append(log, [singleBatch({ batchId: "old", ...OLD_STREAM })]);
    for (let first = 0; first < batches; first += groupBatches) {
      const count = Math.min(groupBatches, batches - first);
      const group = Array.from({ length: count }, (_, place) => bulkBatch(shape, first + place));
      const ids = await append(log, group);
      positions.push(...ids.filter((_, place) => (first + place) % everyBatches === 0));
      if (first / groupBatches % PROGRESS_GROUPS === 0) progress(`${first} batches`);
    }
  });
  await deployment.run(["seal"]);
  if (isFabricated) await fabricateSegments(deployment, events);
  return { shape, bulkBatches: batches, bulkEvents: batches * batchEvents, positions };
}

async function fabricateSegments(deployment: Deployment, events: number): Promise<void> {
  const folder = logFolder(deployment);
  const manifest = (await readManifest(fileStorage(folder)))!;
  const count = RUN_SEGMENTS * Math.ceil(events / STUB_BATCHES_MAX / RUN_SEGMENTS);
  await fabricateLog(folder, manifest, { count, batches: Math.ceil(events / count) });
}

/** Appends until the tail has the given size, one batch per commit. */
export async function fillTail({ deployment, facts }: BuiltLog, wantedBytes: number) {
  progress(`filling the tail to ${rounded(wantedBytes / 1e6, 1)} MB`);
  const idPrefix = `tail-${Date.now()}`;
  await withLog(deployment, async (log) => {
    for (let number = facts.bulkBatches; tailBytes(deployment) < wantedBytes; number++) {
      await append(log, [bulkBatch(facts.shape, number, idPrefix)]);
    }
  });
}
