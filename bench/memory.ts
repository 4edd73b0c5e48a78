/**
 * Measures the peak memory of `serve` under each kind of load and under all kinds at once. Clients
 * never pause. See README.md in this directory.
 */
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { KINDS, loadOf } from "./memory/loads.ts";
import { buildLog } from "./scale/build.ts";
import { type BuiltLog, keptDeployment, readFacts } from "./scale/built_log.ts";
import { shapeNamed } from "./scale/history.ts";
import { Deployment } from "./support/deployment.ts";
import { Followers } from "./support/followers.ts";
import { runLoad } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { memoryBytes, peakMemoryBytes } from "./support/process_stats.ts";
import { megabytes, publishRows, rounded, type Row } from "./support/report.ts";
import { withServer } from "./support/with_deployment.ts";

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
      "server CPU s": load.serverCpuSeconds === null ? null : rounded(load.serverCpuSeconds, 1),
    };
  });
}

/** Follows until a failure. The server closes the response on shutdown, which is not a failure. */
async function followUntilFailure(socketPath: string, after: string): Promise<never> {
  const followers = await Followers.open({ socketPath, count: 1, after });
  return await followers.failed;
}

/** Builds the log if it does not exist. A kept log is not modified, since a copy is measured. */
async function withLog<T>(
  { own: { keep, shape = "batch" }, events, serverRuntime, parent }: BenchOptions,
  use: (log: BuiltLog) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(parent ?? tmpdir(), "bench-"));
  try {
    const kept = await keptDeployment(keep ?? folder, `${shape}-${events}`, serverRuntime);
    const facts = await readFacts(kept) ?? (await buildLog(kept, shapeNamed(shape), events!)).facts;
    if (keep === undefined) return await use({ deployment: kept, facts });
    const copy = join(folder, "copy");
    progress(`copying ${kept.folder}`);
    await cp(kept.folder, copy, { recursive: true });
    return await use({ deployment: await Deployment.at(copy, serverRuntime), facts });
  } finally {
    await rm(folder, { recursive: true });
  }
}

await runBench(async () => {
  const args = [...DEFAULT_ARGS, ...process.argv.slice(2)];
  const options = parseBenchOptions(args, [...KINDS, ALL], ["shape", "keep"]);
  const { events, own: { keep, shape = "batch" } } = options;
  if (keep !== undefined) await mkdir(keep, { recursive: true });
  await withLog(options, async (log) => {
    const name = `memory, ${events} events, ${shape}`;
    await publishRows(name, options, (row) => measureRow(row, log, options));
  });
});
