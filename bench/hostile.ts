/**
 * Measures an innocent client beside hostile ones: it appends and lists one stream, in turn. Peak
 * memory is that of the whole row, and memory after it that of some seconds without the hostile
 * clients. See README.md in this directory.
 */
import type { Buffer } from "node:buffer";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { ATTACK_NAMES, LARGE_KIND, type Target, TOKEN } from "./hostile/attacks.ts";
import { LatencyHistogram } from "./support/latency_histogram.ts";
import { nothingPending } from "./support/log_files.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { getRequest, postRequest, typicalEvents } from "./support/requests.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { Deployment, withServer } from "./support/deployment.ts";

const EVENTS = 4_000_000;
const BATCH_EVENTS = 10_000;
const STREAMS = 1000;
const LARGE_EVENT_BYTES = 30 * 1024 * 1024;
/** Events of a 100 KB batch. */
const LARGE_BATCH_EVENTS = 240;
/** Pause of the innocent client between requests. */
const PAUSE_MS = 5;
/** Time after a row until its memory is measured. */
const SETTLE_MS = 30_000;
const SEALING_TIMEOUT_MS = 1_200_000;

let batches = 0;

/** Builds an authorized request for a batch. */
function batchOf(events: unknown[]): Buffer {
  const batch_id = `${Date.now()}-${batches++}`;
  return postRequest({ batch_id, source: "innocent", events }, TOKEN);
}

function eventOf(number: number, stream: string, kind: string, payload: unknown): unknown {
  return { stream, record_key: `key-${number}`, kind, payload };
}

async function exchange(client: RawClient, request: Buffer): Promise<number> {
  const { status, bodyEnd } = await client.exchange(request);
  if (status !== 200 && status !== 429) throw new Error(`status ${status}: ${bodyEnd}`);
  return status;
}

/** Appends events of two streams and two kinds. */
async function build(deployment: Deployment, events: number): Promise<void> {
  progress(`building a log of ${events} events`);
  await withServer(deployment, async () => {
    const client = await RawClient.connect(deployment.socketPath);
    for (let done = 0; done < events; done += BATCH_EVENTS) {
      const pairs = Array.from({ length: Math.min(events - done, BATCH_EVENTS) }, (_, n) => {
        const name = n % 2 === 0 ? "even" : "odd";
        return eventOf(done + n, name, name, n);
      });
      while (await exchange(client, batchOf(pairs)) === 429);
    }
    client.close();
    await nothingPending(deployment, SEALING_TIMEOUT_MS);
  });
}

/** Appends what the clients that read nothing ask for: a large event, and a page of streams. */
async function appendLarge(client: RawClient): Promise<void> {
  const large = eventOf(0, "large", LARGE_KIND, "x".repeat(LARGE_EVENT_BYTES));
  await exchange(client, batchOf([large]));
  const streams = Array.from({ length: STREAMS }, (_, n) => n);
  await exchange(client, batchOf(streams.map((n) => eventOf(n, `stream-${n}`, "u", n))));
}

/** Puts the token into the configuration. */
async function setToken({ configPath }: Deployment): Promise<void> {
  const text = await readFile(configPath, "utf8");
  await writeFile(configPath, text.replace(/^token = .*$/m, `token = "${TOKEN}"`));
}

/** Appends and lists for `durationMs`, and at least once. */
async function beInnocent(client: RawClient, events: number, durationMs: number) {
  const listing = getRequest("/v1/streams?source=innocent", TOKEN);
  const latencies = new LatencyHistogram();
  let refusals = 0;
  const endMs = performance.now() + durationMs;
  do {
    for (const request of [batchOf(typicalEvents(events)), listing]) {
      const startMs = performance.now();
      const status = await exchange(client, request);
      latencies.record(performance.now() - startMs);
      if (status === 429) refusals += 1;
      await delay(PAUSE_MS);
    }
  } while (performance.now() < endMs);
  return { latencies, refusals };
}

async function measureRow(
  row: string,
  deployment: Deployment,
  { measureMs, warmupMs }: BenchOptions,
): Promise<Row> {
  const { socketPath } = deployment;
  return await withServer(deployment, async ({ pid }) => {
    const client = await RawClient.connect(socketPath);
    const events = row.startsWith("bodies") ? LARGE_BATCH_EVENTS : 1;
    if (row.startsWith("unread")) await appendLarge(client);
    await beInnocent(client, events, warmupMs);
    const startBytes = memoryBytes(pid);
    const workerData: Target = { attack: row, socketPath };
    const worker = new Worker(new URL("./hostile/attacks.ts", import.meta.url), { workerData });
    const failed = new Promise<never>((_, reject) => worker.once("error", reject));
    failed.catch(() => {});
    await Promise.race([once(worker, "message"), failed]);
    const innocent = beInnocent(client, events, measureMs);
    const { latencies, refusals } = await Promise.race([innocent, failed]);
    const peakBytes = peakMemoryBytes(pid);
    worker.postMessage("end");
    await once(worker, "message");
    await worker.terminate();
    await delay(Math.min(SETTLE_MS, 2 * measureMs));
    client.close();
    return {
      row,
      "requests": latencies.count,
      "p50 ms": rounded(latencies.quantileMs(0.5), 1),
      "p99 ms": rounded(latencies.quantileMs(0.99), 1),
      "slowest ms": rounded(latencies.slowestMs, 1),
      "429s": refusals,
      "before MB": megabytes(startBytes),
      "peak MB": megabytes(peakBytes),
      "after MB": megabytes(memoryBytes(pid)),
    };
  });
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), ATTACK_NAMES, ["keep", "checkout"]);
  const { parent, serverRuntime, events = EVENTS, own: { keep, checkout } } = options;
  const folder = await mkdtemp(join(parent ?? tmpdir(), "bench-"));
  const deploy = async (name: string) => {
    const deployment = await Deployment.at(name, { serverRuntime, checkout });
    await setToken(deployment);
    return deployment;
  };
  try {
    const logFolder = keep ?? join(folder, "log");
    const deployment = await deploy(logFolder);
    const builtPath = join(logFolder, "built");
    if (!existsSync(builtPath)) {
      await build(deployment, events);
      await writeFile(builtPath, `${events}`);
    }
    await publishRows(`hostile, ${events} events`, options, async (row) => {
      // Memory of clients that read nothing is measured on a small log, which others don't share.
      const isSmall = row.startsWith("unread");
      return await measureRow(row, isSmall ? await deploy(join(folder, row)) : deployment, options);
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
