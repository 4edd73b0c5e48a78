/**
 * Measures the time from process start to the first response, and the server's memory, for
 * different logs. See README.md in this directory.
 */
import process from "node:process";
import type { Deployment } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { makeReport, megabytes, publish, rounded, type Row } from "./support/report.ts";
import { fill, withDeployment, withServer } from "./support/with_deployment.ts";

interface RestartRow {
  events: number;
  batchEvents: number;
}

const ROWS: Record<string, RestartRow> = {
  "empty": { events: 0, batchEvents: 1 },
  "100k-single": { events: 100_000, batchEvents: 1 },
  "100k-batch": { events: 100_000, batchEvents: 1000 },
  "1M-batch": { events: 1_000_000, batchEvents: 1000 },
};

/** Median startup time, and the server's peak memory at its first response. */
interface Starts {
  startMs: number;
  peakBytes: number | null;
}

async function measureStarts(
  deployment: Deployment,
  starts: number,
  end: "stop" | "kill",
): Promise<Starts> {
  const startsMs: number[] = [];
  let peakBytes: number | null = null;
  for (let start = 0; start < starts; start++) {
    const server = await deployment.serve();
    startsMs.push(server.startMs);
    const bytes = peakMemoryBytes(server.pid);
    if (bytes !== null) peakBytes = Math.max(peakBytes ?? 0, bytes);
    await server[end]();
  }
  startsMs.sort((a, b) => a - b);
  return { startMs: startsMs[starts >> 1]!, peakBytes };
}

async function measureRow(name: string, options: BenchOptions): Promise<Row> {
  const { batchEvents, ...row } = ROWS[name]!;
  const wanted = row.events === 0 ? 0 : options.events ?? row.events;
  progress(`${name}: appending ${wanted} events`);
  return await withDeployment(options, async (deployment) => {
    const events = wanted === 0 ? 0 : await withServer(deployment, async (server) => {
      const filling = { events: wanted, batchEvents, clients: 1 };
      return (await fill(deployment, server, filling)).eventsInAll;
    });
    const clean = await measureStarts(deployment, options.starts, "stop");
    const killed = await measureStarts(deployment, options.starts, "kill");
    return {
      "row": name,
      "events": events,
      "commits": events / batchEvents,
      "start ms": rounded(clean.startMs, 0),
      "after kill ms": rounded(killed.startMs, 0),
      "peak MB": megabytes(clean.peakBytes),
    };
  });
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), Object.keys(ROWS));
  const disk = await withDeployment(options, ({ folder }) => probeDisk(folder));
  const rows: Row[] = [];
  for (const name of options.rows) rows.push(await measureRow(name, options));
  await publish(makeReport("restart", options.serverRuntime, disk, rows), options.jsonPath);
});
