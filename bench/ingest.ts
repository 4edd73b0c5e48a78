/**
 * Measures appends of single events and of batches, from one client and from several. Each row uses
 * a new deployment. See README.md in this directory.
 */
import process from "node:process";
import { probeDisk } from "./support/disk_probe.ts";
import { runLoad } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { loadRow, makeReport, publish, type Row } from "./support/report.ts";
import { withDeployment, withServer } from "./support/with_deployment.ts";
import { ingestWorkload } from "./support/workloads.ts";

interface IngestRow {
  clients: number;
  batchEvents: number;
}

const ROWS: Record<string, IngestRow> = {
  "single-1": { clients: 1, batchEvents: 1 },
  "single-16": { clients: 16, batchEvents: 1 },
  "single-64": { clients: 64, batchEvents: 1 },
  "batch-1": { clients: 1, batchEvents: 1000 },
  "batch-4": { clients: 4, batchEvents: 1000 },
};

async function measureRow(name: string, options: BenchOptions): Promise<Row> {
  const { clients, batchEvents } = ROWS[name]!;
  progress(name);
  return await withDeployment(options, (deployment) =>
    withServer(deployment, async (server) => {
      const load = await runLoad({
        socketPath: deployment.socketPath,
        serverPid: server.pid,
        workloads: Array.from(
          { length: clients },
          (_, client) => ingestWorkload(`client-${client}`, batchEvents),
        ),
        warmupMs: options.events === undefined ? options.warmupMs : 0,
        measureMs: options.measureMs,
        eventsMax: options.events ?? Infinity,
      });
      return loadRow(name, load, peakMemoryBytes(server.pid));
    }));
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), Object.keys(ROWS));
  const disk = await withDeployment(options, ({ folder }) => probeDisk(folder));
  const rows: Row[] = [];
  for (const name of options.rows) rows.push(await measureRow(name, options));
  await publish(makeReport("ingest", options.serverRuntime, disk, rows), options.jsonPath);
});
