/**
 * Measures only the hashing that sealing and verification need, on one thread and with one thread
 * per core, as an upper bound for their throughput. See README.md in this directory.
 */
import { once } from "node:events";
import { availableParallelism, tmpdir } from "node:os";
import process from "node:process";
import { Worker } from "node:worker_threads";
import { HASHING } from "./floor/hashing.ts";
import type { HashTask } from "./floor/hash_worker.ts";
import { ownRuntime } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { parseBenchOptions, progress, runBench } from "./support/options.ts";
import { makeReport, publish, type Row } from "./support/report.ts";

const EVENTS = 1_000_000;
/** Warm-up before the measurement. */
const WARMUP_EVENTS = 50_000;

/** Distributes the events over threads. @returns the time that the slowest thread takes. */
async function measureMs(work: string, events: number, threads: readonly Worker[]) {
  const startMs = performance.now();
  await Promise.all(threads.map(async (thread) => {
    thread.postMessage({ work, events: events / threads.length } satisfies HashTask);
    await once(thread, "message");
  }));
  return performance.now() - startMs;
}

async function eventsPerSecond(work: string, events: number, threads: readonly Worker[]) {
  progress(`${work} on ${threads.length}`);
  await measureMs(work, WARMUP_EVENTS, threads);
  return Math.round(events / await measureMs(work, events, threads) * 1000);
}

await runBench(async () => {
  const { events = EVENTS, rows: works, jsonPath } = parseBenchOptions(
    process.argv.slice(2),
    Object.keys(HASHING),
  );
  const threads = Array.from(
    { length: availableParallelism() },
    () => new Worker(new URL("./floor/hash_worker.ts", import.meta.url)),
  );
  const rows: Row[] = [];
  for (const work of works) {
    rows.push({
      row: work,
      "events/s": await eventsPerSecond(work, events, threads.slice(0, 1)),
      threads: threads.length,
      "events/s on all": await eventsPerSecond(work, events, threads),
    });
  }
  await Promise.all(threads.map((thread) => thread.terminate()));
  await publish(makeReport("hash floor", ownRuntime(), probeDisk(tmpdir()), rows), jsonPath);
});
