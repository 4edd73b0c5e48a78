/**
 * Measures the mirror with a real service and a real `nats-server` on this machine:
 *
 *     node mirror/bench.ts [EVENTS]
 *
 * First prints events/s, CPU time and peak memory of `push` and `restore` with 300-byte payloads.
 * Then, at 1,000 events/s, prints the latency from an event's commit until its message can be
 * consumed and until a standby has written the event to disk.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { peakMemoryBytes, treeCpuSeconds } from "../bench/support/process_stats.ts";
import { EventLogClient } from "../mod.ts";
import { withServing } from "../tests/support/deployment.ts";
import { isRunning, type Spawned } from "../tools/support/program.ts";
import { openStream } from "./nats/stream.ts";
import { readStream } from "./restore/stream_reader.ts";
import { end, startMirror, startPush } from "./tests/support/mirrored.ts";
import { withNats } from "./tests/support/nats_server.ts";
import { STREAM } from "./tests/support/nats_stream.ts";

const EVENTS = Number(process.argv[2] ?? 300_000);
const BATCH_EVENTS = 1000;
const PAD = "x".repeat(270);
const LIVE_SECONDS = 20;
const LIVE_BATCHES_PER_SECOND = 100;
const LIVE_BATCH_EVENTS = 10;
const POLL_MS = 50;

function events(count: number) {
  return Array.from({ length: count }, (_, n) => ({
    stream: n % 2 === 0 ? "orders" : "carts",
    record_key: `${n}`,
    kind: "upserted",
    payload: { n, pad: PAD },
  }));
}

/** Waits for a command to exit, and prints its throughput, CPU time and peak memory. */
async function report(name: string, command: Spawned): Promise<void> {
  const startedMs = performance.now();
  const pid = command.child.pid!;
  let peakBytes = 0;
  let cpu = 0;
  while (isRunning(command)) {
    peakBytes = Math.max(peakBytes, peakMemoryBytes(pid) ?? 0);
    cpu = Math.max(cpu, treeCpuSeconds(pid) ?? 0);
    await delay(POLL_MS);
  }
  const { code, stderr } = await command.exited;
  if (code !== 0) throw new Error(`${name}: ${stderr}`);
  const perSecond = Math.round(EVENTS / (performance.now() - startedMs) * 1000);
  const cpuUs = (cpu / EVENTS * 1e6).toFixed(1);
  print(
    `${name}: ${perSecond} events/s including startup, ${cpuUs} µs of CPU time per event, ` +
      `${Math.round(peakBytes / 2 ** 20)} MiB`,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function percentiles(name: string, delaysMs: number[]): void {
  const sorted = delaysMs.sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(1);
  print(`${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
}

await withServing((served) =>
  withNats(async (nats) => {
    const client = new EventLogClient(served.serving.fetch);
    for (let number = 0; number < EVENTS; number += BATCH_EVENTS) {
      const batchId = `fill/${number}`;
      await client.append({ source: "shop", batchId, events: events(BATCH_EVENTS) });
    }
    await report("push", startPush({ served, nats }, nats.url, ["--once"]));
    const dir = join(served.folder, "copy");
    await report("restore", startMirror(["restore", "--nats", nats.url, dir]));

    const pusher = startPush({ served, nats });
    const standby = startMirror(["standby", "--nats", nats.url, dir]);
    const committedMs = new Map<string, number>();
    const streamMs: number[] = [];
    const standbyMs: number[] = [];
    const waiting: { bytes: number; committed: number }[] = [];
    const stop = new AbortController();
    const reading = (async () => {
      const stream = await openStream({ servers: nats.url, stream: STREAM }, { isCreated: false });
      const from = { startSeq: EVENTS + 1, lastSeq: EVENTS };
      for await (const messages of readStream(stream, from, stop.signal)) {
        const nowMs = performance.now();
        for (const { seq, message } of messages) {
          const { eventId } = stream.factsOf({ seq, header: message.headers! });
          const committed = committedMs.get(eventId);
          if (committed !== undefined) streamMs.push(nowMs - committed);
        }
      }
    })().catch(() => {});
    const tail = join(dir, "data", "log", "tail.ndjson");
    const source = join(served.logDir, "tail.ndjson");
    const watching = setInterval(() => {
      const { size } = statSync(tail, { throwIfNoEntry: false }) ?? { size: 0 };
      while (waiting.length > 0 && waiting[0]!.bytes <= size) {
        standbyMs.push(performance.now() - waiting.shift()!.committed);
      }
    }, 1);
    await delay(2000);
    // Both tails get the same lines. The sizes of their commit headers may differ, but by less than
    // the size of one event per commit.
    const aheadBytes = statSync(source).size - statSync(tail).size;
    for (let number = 0; number < LIVE_SECONDS * LIVE_BATCHES_PER_SECOND; number++) {
      const batch = { source: "live", batchId: `${number}`, events: events(LIVE_BATCH_EVENTS) };
      const receipt = await client.append(batch);
      const nowMs = performance.now();
      committedMs.set(receipt.last_event_id, nowMs);
      waiting.push({ bytes: statSync(source).size - aheadBytes, committed: nowMs });
      await delay(1000 / LIVE_BATCHES_PER_SECOND);
    }
    await delay(2000);
    clearInterval(watching);
    stop.abort();
    await reading;
    percentiles("from the receipt to the stream", streamMs);
    percentiles("from the receipt to the standby's disk", standbyMs);
    await end(standby, "SIGKILL");
    await end(pusher, "SIGKILL");
  })
);
