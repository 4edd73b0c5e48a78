/**
 * Measures how long events take to reach followers, and how much followers slow down ingest,
 * including a follower that never reads. See README.md in this directory.
 */
import process from "node:process";
import type { Deployment, Server } from "./support/deployment.ts";
import { measureDelivery } from "./support/delivery.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { measureFollowedIngest } from "./support/followed_ingest.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { makeReport, megabytes, publish, rounded, type Row } from "./support/report.ts";
import { withDeployment, withServer } from "./support/with_deployment.ts";

interface DeliveryRow {
  followers: number;
  eventsPerSecond: number;
}

const DELIVERY_ROWS: Record<string, DeliveryRow> = {
  "deliver-1": { followers: 1, eventsPerSecond: 200 },
  "deliver-1000": { followers: 1000, eventsPerSecond: 50 },
};

interface IngestRow {
  followers: number;
  /** Whether the followers read. */
  reading: boolean;
  clients: number;
  batchEvents: number;
}

const INGEST_ROWS: Record<string, IngestRow> = {
  "single-stalled": { followers: 1, reading: false, clients: 16, batchEvents: 1 },
  "single-reading": { followers: 1, reading: true, clients: 16, batchEvents: 1 },
  "batch-stalled": { followers: 1, reading: false, clients: 4, batchEvents: 1000 },
  "batch-reading": { followers: 1, reading: true, clients: 4, batchEvents: 1000 },
};

type Measurement = (deployment: Deployment, server: Server) => Promise<Row>;

function deliveryRow(name: string, options: BenchOptions): Measurement {
  const { followers, eventsPerSecond } = DELIVERY_ROWS[name]!;
  return async ({ socketPath }, { pid }) => {
    const delivery = await measureDelivery({
      socketPath,
      serverPid: pid,
      followers,
      eventsPerSecond,
      warmupMs: options.warmupMs,
      measureMs: options.measureMs,
      eventsMax: options.events ?? Infinity,
    });
    const { fromAck, fromSend } = delivery;
    return {
      ...emptyRow(name, followers),
      "events/s": Math.round(delivery.events / delivery.seconds),
      "lines": fromAck.count,
      "p50 ms": rounded(fromAck.quantileMs(0.5), 3),
      "p99 ms": rounded(fromAck.quantileMs(0.99), 3),
      "max ms": rounded(fromAck.quantileMs(1), 3),
      "sent p50 ms": rounded(fromSend.quantileMs(0.5), 3),
      "sent p99 ms": rounded(fromSend.quantileMs(0.99), 3),
      "server CPU s": secondsCell(delivery.serverCpuSeconds),
      "client CPU s": rounded(delivery.clientCpuSeconds, 2),
      "after MB": megabytes(memoryBytes(pid)),
      "peak MB": megabytes(peakMemoryBytes(pid)),
    };
  };
}

function ingestRow(name: string, options: BenchOptions): Measurement {
  const { followers, ...row } = INGEST_ROWS[name]!;
  return async ({ socketPath }, { pid }) => {
    const ingest = await measureFollowedIngest({
      socketPath,
      serverPid: pid,
      followers,
      ...row,
      warmupMs: options.warmupMs,
      measureMs: options.measureMs,
      eventsMax: options.events ?? Infinity,
    });
    return {
      ...emptyRow(name, followers),
      "events/s": Math.round(ingest.followed),
      "alone events/s": Math.round(ingest.alone),
      "% of alone": rounded(100 * ingest.followed / ingest.alone, 1),
      "server CPU s": secondsCell(ingest.serverCpuSeconds),
      "client CPU s": rounded(ingest.clientCpuSeconds, 2),
      "before MB": megabytes(ingest.memoryBeforeBytes),
      "after MB": megabytes(memoryBytes(pid)),
      "peak MB": megabytes(peakMemoryBytes(pid)),
    };
  };
}

/** Creates a row with all columns, since the table's columns are those of its first row. */
function emptyRow(name: string, followers: number): Row {
  return {
    "row": name,
    "followers": followers,
    "events/s": null,
    "alone events/s": null,
    "% of alone": null,
    "lines": null,
    "p50 ms": null,
    "p99 ms": null,
    "max ms": null,
    "sent p50 ms": null,
    "sent p99 ms": null,
    "server CPU s": null,
    "client CPU s": null,
    "before MB": null,
    "after MB": null,
    "peak MB": null,
  };
}

function secondsCell(seconds: number | null): number | null {
  return seconds === null ? null : rounded(seconds, 2);
}

async function measureRow(name: string, options: BenchOptions): Promise<Row> {
  progress(name);
  const measure = name in DELIVERY_ROWS ? deliveryRow(name, options) : ingestRow(name, options);
  return await withDeployment(
    options,
    (deployment) => withServer(deployment, (server) => measure(deployment, server)),
  );
}

await runBench(async () => {
  const allRows = [...Object.keys(DELIVERY_ROWS), ...Object.keys(INGEST_ROWS)];
  const options = parseBenchOptions(process.argv.slice(2), allRows);
  const disk = await withDeployment(options, ({ folder }) => probeDisk(folder));
  const rows: Row[] = [];
  for (const name of options.rows) rows.push(await measureRow(name, options));
  await publish(makeReport("follow", options.serverRuntime, disk, rows), options.jsonPath);
});
