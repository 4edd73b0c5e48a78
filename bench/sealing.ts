/**
 * Measures how much background sealing slows down appends. Applies the same load to a service that
 * seals its tail and to one that never does, in alternating windows. See README.md in this
 * directory.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { TAIL_ROTATE_BYTES } from "../src/limits.ts";
import type { Deployment, Server } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import type { LatencyHistogram } from "./support/latency_histogram.ts";
import { runLoad, type Workload } from "./support/load.ts";
import { runOpenLoop } from "./support/open_loop.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { makeReport, megabytes, publish, rounded, type Row } from "./support/report.ts";
import { withDeployment } from "./support/with_deployment.ts";
import { ingestWorkload } from "./support/workloads.ts";
import { median } from "../tools/support/median.ts";

interface SealingRow {
  clients: number;
  batchEvents: number;
  /** Size at which the tail is sealed. */
  rotateBytes: number;
  /** Whether to send requests at half the rate that closed-loop clients reach. */
  isHalf?: boolean;
}

const ROWS: Record<string, SealingRow> = {
  // Small enough that each window includes a seal.
  "single-half": { clients: 16, batchEvents: 1, rotateBytes: TAIL_ROTATE_BYTES / 8, isHalf: true },
  "single-16": { clients: 16, batchEvents: 1, rotateBytes: TAIL_ROTATE_BYTES },
  "batch-4": { clients: 4, batchEvents: 1000, rotateBytes: TAIL_ROTATE_BYTES },
};
const PEAK_MS = 2000;
/** Windows per service. */
const WINDOWS = 5;
const NEVER_BYTES = Number.MAX_SAFE_INTEGER;
const POLL_MS = 50;

/** One of the two services, with its measurements. */
interface Side {
  deployment: Deployment;
  server: Server;
  workloads: Workload[];
  /** The measurement for each window. */
  latencies: LatencyHistogram[];
  events: number;
  seconds: number;
}

async function startSide(
  deployment: Deployment,
  row: string,
  rotateBytes: number,
): Promise<Side> {
  const { clients, batchEvents } = ROWS[row]!;
  return {
    deployment,
    server: await deployment.serve(rotateBytes),
    workloads: Array.from(
      { length: clients },
      (_, client) => ingestWorkload(`client-${client}`, batchEvents),
    ),
    latencies: [],
    events: 0,
    seconds: 0,
  };
}

/** @param requestsPerSecond null for a closed loop. */
async function measureWindow(
  side: Side,
  options: BenchOptions,
  requestsPerSecond: number | null,
): Promise<void> {
  if (requestsPerSecond === null) await measureLoad(side, options);
  else await measureRate(side, options, requestsPerSecond);
  // Finish the work in this window before the next one.
  while ((await filesIn(side, "pending")) > 0) await delay(POLL_MS);
}

async function measureLoad(side: Side, options: BenchOptions): Promise<void> {
  const load = await runLoad({
    socketPath: side.deployment.socketPath,
    serverPid: side.server.pid,
    workloads: side.workloads,
    warmupMs: options.events === undefined ? options.warmupMs : 0,
    measureMs: options.measureMs,
    eventsMax: options.events ?? Infinity,
  });
  side.latencies.push(load.latencies);
  side.events += load.events;
  side.seconds += load.seconds;
}

async function measureRate(
  side: Side,
  { warmupMs, measureMs }: BenchOptions,
  requestsPerSecond: number,
): Promise<void> {
  const { workloads, deployment: { socketPath } } = side;
  const times = { warmupMs, measureMs };
  const latencies = await runOpenLoop({ socketPath, workloads, requestsPerSecond, ...times });
  side.latencies.push(latencies);
  side.events += latencies.count;
  side.seconds += measureMs / 1000;
}

async function peakPerSecond({ deployment, server, workloads }: Side): Promise<number> {
  const load = await runLoad({
    socketPath: deployment.socketPath,
    serverPid: server.pid,
    workloads,
    warmupMs: 0,
    measureMs: PEAK_MS,
    eventsMax: Infinity,
  });
  return load.requests / load.seconds;
}

async function filesIn({ deployment }: Side, folder: string): Promise<number> {
  return (await readdir(join(deployment.folder, "data", "log", folder))).length;
}

/** Returns the median across the windows, so that a disk stall in one of them has no effect. */
function middleOfWindows({ latencies }: Side, share: number): number {
  return median(latencies.map((window) => window.quantileMs(share)));
}

async function rowOf(name: string, sealing: Side, plain: Side): Promise<Row> {
  const p99 = (side: Side) => middleOfWindows(side, 0.99);
  const rate = ({ events, seconds }: Side) => Math.round(events / seconds);
  return {
    "row": name,
    "segments": await filesIn(sealing, "segments"),
    "events/s": rate(sealing),
    "without": rate(plain),
    "p50 ms": rounded(middleOfWindows(sealing, 0.5), 3),
    "p50 without": rounded(middleOfWindows(plain, 0.5), 3),
    "p99 ms": rounded(p99(sealing), 3),
    "p99 without": rounded(p99(plain), 3),
    "p99 ratio": rounded(p99(sealing) / p99(plain), 2),
    "peak MB": megabytes(peakMemoryBytes(sealing.server.pid)),
    "MB without": megabytes(peakMemoryBytes(plain.server.pid)),
  };
}

function measureRow(name: string, options: BenchOptions): Promise<Row> {
  progress(name);
  return withDeployment(options, (first) =>
    withDeployment(options, async (second) => {
      const sealing = await startSide(first, name, ROWS[name]!.rotateBytes);
      const plain = await startSide(second, name, NEVER_BYTES);
      try {
        const rate = ROWS[name]!.isHalf === true ? await peakPerSecond(plain) / 2 : null;
        for (let window = 0; window < WINDOWS; window++) {
          for (const side of [plain, sealing]) await measureWindow(side, options, rate);
        }
        return await rowOf(name, sealing, plain);
      } finally {
        for (const { server } of [sealing, plain]) await server.stop();
      }
    }));
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), Object.keys(ROWS));
  const disk = await withDeployment(options, ({ folder }) => probeDisk(folder));
  const rows: Row[] = [];
  for (const name of options.rows) rows.push(await measureRow(name, options));
  await publish(makeReport("sealing", options.serverRuntime, disk, rows), options.jsonPath);
});
