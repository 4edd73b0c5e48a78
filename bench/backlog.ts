/**
 * Appends events, each in a stream of its own, faster than they can be sealed, and reports memory,
 * the responses, and how long sealing takes to catch up. See README.md in this directory.
 */
import { setTimeout as delay } from "node:timers/promises";
import { median } from "../tools/support/median.ts";
import { ask } from "./support/exchange.ts";
import { backlogBytes, nothingPending } from "./support/log_files.ts";
import { type BenchOptions, parseBenchOptions, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { runPatientLoad } from "./support/patient_load.ts";
import { RawClient } from "./support/raw_client.ts";
import { digits, getRequest, postRequest } from "./support/requests.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { type Deployment, withDeployment, withServer } from "./support/deployment.ts";
import { appending } from "./support/workloads.ts";

const EVENTS = 24_000_000;
const CLIENTS = 3;
const BATCH_EVENTS = 10_000;
const NUMBER_DIGITS = 12;
const LIST_INTERVAL_MS = 1000;
const SAMPLE_MS = 100;
const SEALING_TIMEOUT_MS = 1_200_000;
/** Limit on appending, far above what it takes. */
const APPENDING_MS = 24 * 3_600_000;

/** Builds batch `number`, whose events have streams of their own. */
function ownStreams(number: number, events: number): object {
  const names = Array.from({ length: events }, (_, place) => {
    // Multiplying by an odd number spreads the streams over the whole range of names.
    const stream = Math.imul(number * events + place, 0x9e3779b1) >>> 0;
    return `stream-${digits(stream, NUMBER_DIGITS)}`;
  });
  return {
    batch_id: `${number}`,
    source: `batches-of-${events}`,
    events: names.map((stream) => ({ stream, record_key: "key", kind: "created", payload: 1 })),
  };
}

/** Appends until all events are acknowledged. */
async function runLoad(deployment: Deployment, serverPid: number, eventsMax: number) {
  const { socketPath } = deployment;
  const listMs: number[] = [];
  let [batches, peakBacklogBytes, isOver] = [0, 0, false];
  const next = () => postRequest(ownStreams(batches++, BATCH_EVENTS));
  const workloads = Array.from({ length: CLIENTS }, () => appending(next, BATCH_EVENTS));
  /** Requests a page of one stream right after an append. */
  const list = async () => {
    const client = await RawClient.connect(socketPath);
    const page = { request: getRequest("/v1/streams?limit=1"), expected: "" };
    for (let number = 2 ** 31; !isOver; number++) {
      await client.exchange(postRequest(ownStreams(number, 1)));
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
  const options = { socketPath, serverPid, workloads, measureMs: APPENDING_MS, eventsMax };
  const appends = runPatientLoad(options).finally(() => isOver = true);
  const [load] = await Promise.all([appends, watch(), list()]);
  return { ...load, listMs, peakBacklogBytes };
}

async function measureRow(row: string, options: BenchOptions): Promise<Row> {
  return await withDeployment(options, (deployment) =>
    withServer(deployment, async ({ pid }) => {
      const load = await runLoad(deployment, pid, options.events ?? EVENTS);
      const sealingMs = performance.now();
      await nothingPending(deployment, SEALING_TIMEOUT_MS);
      const sealedSeconds = (performance.now() - sealingMs) / 1000;
      return {
        row,
        "events": load.events,
        "events/s": Math.round(load.events / load.seconds),
        "429s": load.refused,
        "closed": load.closed,
        "peak backlog MB": megabytes(load.peakBacklogBytes),
        "peak MB": megabytes(peakMemoryBytes(pid)),
        "sealed after s": rounded(sealedSeconds, 1),
        "page of one p50 ms": rounded(median(load.listMs), 1),
        "slowest ms": rounded(Math.max(...load.listMs), 1),
      };
    }));
}

await runBench(async () => {
  const options = parseBenchOptions(["full-speed"]);
  await publishRows("backlog", options, (row) => measureRow(row, options));
});
