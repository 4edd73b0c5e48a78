/**
 * Appends events, each in a stream of its own, faster than they can be sealed, and reports memory,
 * the responses, and how long sealing takes to catch up. See README.md in this directory.
 */
import type { Buffer } from "node:buffer";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { median } from "../tools/support/median.ts";
import { ask } from "./support/exchange.ts";
import { backlogBytes, nothingPending } from "./support/log_files.ts";
import { type BenchOptions, parseBenchOptions, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { digits, getRequest, RequestTemplate } from "./support/requests.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { type Deployment, withDeployment, withServer } from "./support/deployment.ts";

const EVENTS = 24_000_000;
const CLIENTS = 3;
const BATCH_EVENTS = 10_000;
const NUMBER_DIGITS = 12;
const RETRY_MS = 1000;
const LIST_INTERVAL_MS = 1000;
const SAMPLE_MS = 100;
const SEALING_TIMEOUT_MS = 1_200_000;

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

/** Appends until all events are acknowledged. */
async function runLoad(deployment: Deployment, eventsMax: number) {
  const { socketPath } = deployment;
  const statuses = new Map<number, number>();
  const listMs: number[] = [];
  let [batches, peakBacklogBytes, isOver] = [0, 0, false];
  const append = async () => {
    const client = await RawClient.connect(socketPath);
    const requests = new OwnStreamsRequest(BATCH_EVENTS);
    while (batches * BATCH_EVENTS < eventsMax) {
      const request = requests.of(batches++);
      for (let status = 0; status !== 200;) {
        status = (await client.exchange(request)).status;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 429) await delay(RETRY_MS);
        else if (status !== 200) throw new Error(`an append: status ${status}`);
      }
    }
    client.close();
  };
  /** Requests a page of one stream right after an append. */
  const list = async () => {
    const client = await RawClient.connect(socketPath);
    const request = new OwnStreamsRequest(1);
    const page = { request: getRequest("/v1/streams?limit=1"), expected: "" };
    for (let number = 2 ** 31; !isOver; number++) {
      await client.exchange(request.of(number));
      listMs.push((await ask(client, page)).tookMs);
      await delay(LIST_INTERVAL_MS);
    }
    client.close();
  };
  const watch = async () => {
    for (; !isOver; await delay(SAMPLE_MS)) {
      peakBacklogBytes = Math.max(peakBacklogBytes, backlogBytes(deployment));
    }
  };
  const appends = Promise.all(Array.from({ length: CLIENTS }, append));
  const others = Promise.all([watch(), list()]);
  await Promise.race([appends, others]).finally(() => isOver = true);
  await others;
  return { statuses, listMs, peakBacklogBytes, events: batches * BATCH_EVENTS };
}

async function measureRow(row: string, options: BenchOptions): Promise<Row> {
  return await withDeployment(options, (deployment) =>
    withServer(deployment, async ({ pid }) => {
      const startMs = performance.now();
      const load = await runLoad(deployment, options.events ?? EVENTS);
      const seconds = (performance.now() - startMs) / 1000;
      const sealingMs = performance.now();
      await nothingPending(deployment, SEALING_TIMEOUT_MS);
      const sealedSeconds = (performance.now() - sealingMs) / 1000;
      return {
        row,
        "events": load.events,
        "events/s": Math.round(load.events / seconds),
        "responses": [...load.statuses].map(([status, count]) => `${status}: ${count}`).join(", "),
        "peak backlog MB": megabytes(load.peakBacklogBytes),
        "peak MB": megabytes(peakMemoryBytes(pid)),
        "sealed after s": rounded(sealedSeconds, 1),
        "page of one p50 ms": rounded(median(load.listMs), 1),
        "slowest ms": rounded(Math.max(...load.listMs), 1),
      };
    }));
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), ["full-speed"]);
  await publishRows("backlog", options, (row) => measureRow(row, options));
});
