/**
 * Measures HTTP servers that do less than the service, on the same machine and under the same load,
 * as a lower bound for the service's cost. See README.md in this directory.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type Served, withFloor } from "./floor/floor_server.ts";
import { FLOORS } from "./floor/floors.ts";
import { measureServedDelivery, workloadsOf } from "./peers/ours.ts";
import { INGEST_ROWS } from "./peers/rows.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { runLoad, type Workload } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { loadRow, makeReport, publish, rounded, type Row } from "./support/report.ts";

/** Load for the delivery row, with one follower. */
const DELIVER = "deliver";

/** Load for the replay row, with one client. */
const REPLAY = "replay";
const OWN_LOADS: Record<string, string> = { "forward": DELIVER, "page": REPLAY };

/** A row is a server and a load: `store:single-64`. */
const ROWS = Object.keys(FLOORS).flatMap((floor) => {
  const own = OWN_LOADS[floor];
  const loads = own === undefined ? Object.keys(INGEST_ROWS) : [own];
  return loads.map((load) => `${floor}:${load}`);
});

async function measureRow(row: string, options: BenchOptions, folder: string): Promise<Row> {
  progress(row);
  const [floor, load] = row.split(":") as [string, string];
  return await withFloor(floor, options.serverRuntime, folder, async (served) => {
    return load === DELIVER
      ? await deliveryRow(row, served, options)
      : await servedRow(row, served, workloadsOf(load === REPLAY ? "replay-tail" : load), options);
  });
}

async function servedRow(
  row: string,
  { socketPath, pid }: Served,
  workloads: Workload[],
  options: BenchOptions,
): Promise<Row> {
  const result = await runLoad({
    socketPath,
    serverPid: pid,
    workloads,
    warmupMs: options.warmupMs,
    measureMs: options.measureMs,
    eventsMax: options.events ?? Infinity,
  });
  return loadRow(row, result, peakMemoryBytes(pid));
}

/** Measures from the first byte of an event to its arrival at the follower. */
async function deliveryRow(row: string, served: Served, options: BenchOptions): Promise<Row> {
  const measured = await measureServedDelivery(served, options);
  return {
    "row": row,
    "events/s": Math.round(measured.eventsPerSecond!),
    "p50 ms": rounded(measured.p50Ms!, 3),
    "p99 ms": rounded(measured.p99Ms!, 3),
  };
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), ROWS);
  const folder = await mkdtemp(join(options.parent ?? tmpdir(), "bench-floor-"));
  try {
    const disk = probeDisk(folder);
    const rows: Row[] = [];
    for (const row of options.rows) rows.push(await measureRow(row, options, folder));
    await publish(makeReport("floor", options.serverRuntime, disk, rows), options.jsonPath);
  } finally {
    await rm(folder, { recursive: true });
  }
});
