/**
 * Measures request latency while the service is busy: at half of its peak rate, and while another
 * client sends the largest batches. See README.md in this directory.
 */
import process from "node:process";
import { BATCH_EVENTS_MAX } from "../src/limits.ts";
import type { Deployment, Server } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import type { LatencyHistogram } from "./support/latency_histogram.ts";
import { runLoad, type Workload } from "./support/load.ts";
import { runOpenLoop } from "./support/open_loop.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { makeReport, publish, rounded, type Row } from "./support/report.ts";
import { fill, withDeployment, withServer } from "./support/with_deployment.ts";
import { ingestWorkload, pageWorkload } from "./support/workloads.ts";

const CONNECTIONS = 64;
/** Request rate while another client sends large batches. */
const BESIDE_PER_SECOND = 200;
const PAGE_EVENTS = 10;
const PEAK_SHARE = 0.5;

/** A load at a fixed rate, and the load that runs alongside it. */
interface Measured {
  workloads: Workload[];
  requestsPerSecond: number;
  /** Whether another client sends batches of BATCH_EVENTS_MAX, one after another. */
  besideBatches: boolean;
}

const steady = { requestsPerSecond: BESIDE_PER_SECOND, besideBatches: false };
const singles = () =>
  Array.from({ length: CONNECTIONS }, (_, client) => ingestWorkload(`single-${client}`, 1));
const pages = () => Array.from({ length: CONNECTIONS }, () => pageWorkload(null, PAGE_EVENTS));

const ROWS: Record<
  string,
  (deployment: Deployment, server: Server, options: BenchOptions) => Promise<Measured>
> = {
  "single-half": async (deployment, server, options) => {
    const peak = await peakPerSecond(deployment, server, options);
    return { workloads: singles(), requestsPerSecond: peak * PEAK_SHARE, besideBatches: false };
  },
  "single-alone": () => Promise.resolve({ ...steady, workloads: singles() }),
  "single-beside": () => Promise.resolve({ ...steady, workloads: singles(), besideBatches: true }),
  "replay-alone": () => Promise.resolve({ ...steady, workloads: pages() }),
  "replay-beside": () => Promise.resolve({ ...steady, workloads: pages(), besideBatches: true }),
};

/** Measures the peak rate that the same number of closed-loop clients reaches. */
async function peakPerSecond(
  { socketPath }: Deployment,
  { pid }: Server,
  { warmupMs, measureMs }: BenchOptions,
): Promise<number> {
  const workloads = Array.from(
    { length: CONNECTIONS },
    (_, client) => ingestWorkload(`peak-${client}`, 1),
  );
  const times = { warmupMs, measureMs, eventsMax: Infinity };
  const load = await runLoad({ socketPath, serverPid: pid, workloads, ...times });
  return load.requests / load.seconds;
}

/** Sends large batches until `measuring` is over. @returns their events per second. */
async function besideBatches(
  { socketPath }: Deployment,
  { pid }: Server,
  { warmupMs, measureMs }: BenchOptions,
): Promise<number> {
  const workloads = [ingestWorkload("large", BATCH_EVENTS_MAX)];
  const times = { warmupMs, measureMs, eventsMax: Infinity };
  const load = await runLoad({ socketPath, serverPid: pid, workloads, ...times });
  return load.events / load.seconds;
}

async function measureRow(name: string, options: BenchOptions): Promise<Row> {
  progress(name);
  const { warmupMs, measureMs } = options;
  return await withDeployment(options, (deployment) =>
    withServer(deployment, async (server) => {
      await fill(deployment, server, { events: PAGE_EVENTS, batchEvents: PAGE_EVENTS, clients: 1 });
      const measured = await ROWS[name]!(deployment, server, options);
      const { workloads, requestsPerSecond } = measured;
      const { socketPath } = deployment;
      const [latencies, batchEventsPerSecond] = await Promise.all([
        runOpenLoop({ socketPath, workloads, requestsPerSecond, warmupMs, measureMs }),
        measured.besideBatches ? besideBatches(deployment, server, options) : 0,
      ]);
      return latencyRow(name, requestsPerSecond, latencies, batchEventsPerSecond);
    }));
}

function latencyRow(
  name: string,
  requestsPerSecond: number,
  latencies: LatencyHistogram,
  batchEventsPerSecond: number,
): Row {
  return {
    "row": name,
    "requests/s": Math.round(requestsPerSecond),
    "p50 ms": rounded(latencies.quantileMs(0.5), 2),
    "p99 ms": rounded(latencies.quantileMs(0.99), 2),
    "p99.9 ms": rounded(latencies.quantileMs(0.999), 2),
    "max ms": rounded(latencies.quantileMs(1), 2),
    "requests": latencies.count,
    "beside events/s": Math.round(batchEventsPerSecond),
  };
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), Object.keys(ROWS));
  const disk = await withDeployment(options, ({ folder }) => probeDisk(folder));
  const rows: Row[] = [];
  for (const name of options.rows) rows.push(await measureRow(name, options));
  await publish(makeReport("latency", options.serverRuntime, disk, rows), options.jsonPath);
});
