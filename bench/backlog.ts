/**
 * Appends events, each in a stream of its own, faster than they can be sealed, and reports memory,
 * the responses, and how long sealing takes to catch up. See README.md in this directory.
 */
import type { Buffer } from "node:buffer";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { median } from "../tools/support/median.ts";
import type { Deployment, Server } from "./support/deployment.ts";
import { type BenchOptions, parseBenchOptions, runBench } from "./support/options.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { digits, getRequest, RequestTemplate } from "./support/requests.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { withDeployment } from "./support/with_deployment.ts";

/** `full-speed` appends all events; `killed` kills the server once its backlog is full. */
const ROWS = ["full-speed", "killed"];
const EVENTS = 24_000_000;
const CLIENTS = 3;
const BATCH_EVENTS = 10_000;
const NUMBER_DIGITS = 12;
const RETRY_MS = 1000;
const LIST_INTERVAL_MS = 1000;
const SAMPLE_MS = 100;
/** An append that takes longer than this is waiting for sealing. */
const WAITING_MS = 1000;

/** A `POST /v1/events` whose events have streams of their own. */
class OwnStreamsRequest {
  readonly #template: RequestTemplate;

  constructor(events: number) {
    const placeholder = "#".repeat(NUMBER_DIGITS);
    const stream = `stream-${placeholder}`;
    const event = { stream, record_key: "key", kind: "created", payload: 1 };
    const source = `batches-of-${events}`;
    const batch = { batch_id: placeholder, source, events: new Array(events).fill(event) };
    this.#template = new RequestTemplate(batch, [placeholder]);
  }

  /** The request of batch `number`, until the next call. */
  of(number: number): Buffer {
    const count = this.#template.count(0);
    for (let place = 0; place < count; place++) {
      // Multiplying by an odd number spreads the streams over the whole range of names.
      const stream = Math.imul(number * count + place, 0x9e3779b1) >>> 0;
      this.#template.write(0, digits(stream, NUMBER_DIGITS), place, place + 1);
    }
    return this.#template.bytes;
  }
}

interface Load {
  statuses: Map<number, number>;
  /** Latencies of a page of one stream right after an append, in milliseconds. */
  listMs: number[];
  peakBacklogBytes: number;
  /** Whether an append has waited for sealing. */
  hasWaited: boolean;
  isOver: boolean;
}

async function append(socketPath: string, load: Load, nextBatch: () => number | null) {
  const client = await RawClient.connect(socketPath);
  const request = new OwnStreamsRequest(BATCH_EVENTS);
  for (let batch = nextBatch(); batch !== null;) {
    const startMs = performance.now();
    const { status } = await client.exchange(request.of(batch));
    load.hasWaited ||= performance.now() - startMs > WAITING_MS;
    load.statuses.set(status, (load.statuses.get(status) ?? 0) + 1);
    if (status === 200) batch = nextBatch();
    else if (status === 429) await delay(RETRY_MS);
    else throw new Error(`an append: status ${status}`);
  }
  client.close();
}

async function list(socketPath: string, load: Load): Promise<void> {
  const client = await RawClient.connect(socketPath);
  const request = new OwnStreamsRequest(1);
  const page = getRequest("/v1/streams?limit=1");
  for (let number = 2 ** 31; !load.isOver; number++) {
    await client.exchange(request.of(number));
    const startMs = performance.now();
    const { status, bodyEnd } = await client.exchange(page);
    load.listMs.push(performance.now() - startMs);
    if (status !== 200) throw new Error(`a page of streams: status ${status}: ${bodyEnd}`);
    await delay(LIST_INTERVAL_MS);
  }
  client.close();
}

/** Size of the tail and the pending files. */
function backlogBytes({ folder }: Deployment): number {
  const log = join(folder, "data", "log");
  const pending = readdirSync(join(log, "pending")).map((name) => join(log, "pending", name));
  return [join(log, "tail.ndjson"), ...pending].reduce(
    (sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

async function watch(deployment: Deployment, load: Load): Promise<void> {
  while (!load.isOver) {
    load.peakBacklogBytes = Math.max(load.peakBacklogBytes, backlogBytes(deployment));
    await delay(SAMPLE_MS);
  }
}

async function untilSealed({ folder }: Deployment): Promise<void> {
  const pending = join(folder, "data", "log", "pending");
  while (readdirSync(pending).length > 0) await delay(SAMPLE_MS);
}

async function runLoad(deployment: Deployment, events: number, isKilled: boolean) {
  const { socketPath } = deployment;
  const load: Load = {
    statuses: new Map(),
    listMs: [],
    peakBacklogBytes: 0,
    hasWaited: false,
    isOver: false,
  };
  let batches = 0;
  const nextBatch = () =>
    batches * BATCH_EVENTS >= events || isKilled && load.hasWaited ? null : batches++;
  const appends = Array.from({ length: CLIENTS }, () => append(socketPath, load, nextBatch));
  const others = [watch(deployment, load)];
  if (!isKilled) others.push(list(socketPath, load));
  await Promise.race([Promise.all(appends), Promise.all(others)]);
  load.isOver = true;
  if (!isKilled) await Promise.all(others);
  return { load, events: batches * BATCH_EVENTS };
}

async function measureRow(row: string, options: BenchOptions): Promise<Row> {
  const isKilled = row === "killed";
  return await withDeployment(options, async (deployment) => {
    const server: Server = await deployment.serve();
    const startMs = performance.now();
    const { load, events } = await runLoad(deployment, options.events ?? EVENTS, isKilled);
    const seconds = (performance.now() - startMs) / 1000;
    const shared = {
      row,
      events,
      "events/s": Math.round(events / seconds),
      responses: [...load.statuses].map(([status, count]) => `${status}: ${count}`).join(", "),
      "peak backlog MB": megabytes(load.peakBacklogBytes),
      "peak MB": megabytes(peakMemoryBytes(server.pid)),
    };
    if (isKilled) {
      await server.kill();
      const next = await deployment.serve();
      const startMB = megabytes(memoryBytes(next.pid));
      const peakMB = megabytes(peakMemoryBytes(next.pid));
      await next.kill();
      return { ...shared, "start ms": rounded(next.startMs, 0), "start MB": startMB, peakMB };
    }
    const sealingMs = performance.now();
    await untilSealed(deployment);
    const sealedSeconds = (performance.now() - sealingMs) / 1000;
    const peakMB = megabytes(peakMemoryBytes(server.pid));
    await server.stop();
    return {
      ...shared,
      "peak MB": peakMB,
      "sealed after s": rounded(sealedSeconds, 1),
      "page of one p50 ms": rounded(median(load.listMs), 1),
      "slowest ms": rounded(Math.max(...load.listMs), 1),
    };
  });
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), ROWS);
  const { rows } = options;
  // Each row has columns of its own.
  for (const row of rows) {
    const only = { ...options, rows: [row] };
    await publishRows(`backlog, ${row}`, only, () => measureRow(row, options));
  }
});
