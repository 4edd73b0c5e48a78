/**
 * Measures the peak memory of `serve` under each kind of load and under all kinds at once. Clients
 * never pause. See README.md in this directory.
 */
import process from "node:process";
import { KINDS, loadOf } from "./memory/loads.ts";
import { withBuiltLog } from "./scale/build.ts";
import { type BuiltLog, writeFacts } from "./scale/built_log.ts";
import { Followers } from "./support/followers.ts";
import { runLoad } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, runBench } from "./support/options.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { withServer } from "./support/deployment.ts";

/** All kinds of load at once. */
const ALL = "all";
const DEFAULT_ARGS = ["--seconds", "40", "--events", "1e6"];

async function measureRow(
  row: string,
  { deployment, facts }: BuiltLog,
  { measureMs }: BenchOptions,
): Promise<Row> {
  const { socketPath } = deployment;
  return await withServer(deployment, async ({ pid }) => {
    const startBytes = memoryBytes(pid);
    const { workloads, followFrom } = loadOf(row, row === ALL ? KINDS : [row], facts);
    const load = await Promise.race([
      runLoad({ socketPath, serverPid: pid, workloads, measureMs }),
      ...followFrom.map((after) => followUntilFailure(socketPath, after)),
    ]);
    return {
      row,
      "clients": workloads.length + followFrom.length,
      "requests/s": rounded(load.latencies.count / load.seconds, 1),
      "appended events/s": Math.round(load.events / load.seconds),
      "after start MB": megabytes(startBytes),
      "at the end MB": megabytes(memoryBytes(pid)),
      "peak MB": megabytes(peakMemoryBytes(pid)),
    };
  });
}

/** Follows until a failure. The server closes the response on shutdown, which is not a failure. */
async function followUntilFailure(socketPath: string, after: string): Promise<never> {
  const followers = await Followers.open({ socketPath, count: 1, after });
  return await followers.failed;
}

await runBench(async () => {
  const args = [...DEFAULT_ARGS, ...process.argv.slice(2)];
  const options = parseBenchOptions(args, [...KINDS, ALL], ["shape", "keep"]);
  const { events, own: { shape = "batch" } } = options;
  await withBuiltLog(options, events!, async (log) => {
    const name = `memory, ${events} events, ${shape}`;
    await publishRows(name, options, async (row) => {
      const figures = await measureRow(row, log, options);
      await writeFacts(log);
      return figures;
    });
  });
});
