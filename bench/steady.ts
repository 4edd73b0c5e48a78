/**
 * Runs at a steady rate for a long time: clients append, followers keep up, and the server seals in
 * the background. Reports figures for each minute, and whether the last third of the run matched
 * the first. See README.md in this directory.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { Deliveries } from "./steady/deliveries.ts";
import { parseSteadyOptions, type SteadyOptions } from "./steady/options.ts";
import { measurePeak } from "./steady/peak.ts";
import { Producers } from "./steady/producers.ts";
import { compareThirds, type IntervalFigures } from "./steady/thirds.ts";
import type { Deployment, Server } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { Followers } from "./support/followers.ts";
import { sealedPart } from "./support/log_files.ts";
import { progress, runBench } from "./support/options.ts";
import {
  cpuSeconds,
  memoryBytes,
  openDescriptors,
  peakMemoryBytes,
} from "./support/process_stats.ts";
import {
  formatTable,
  makeReport,
  megabytes,
  publish,
  rounded,
  type Row,
} from "./support/report.ts";
import { withDeployment, withServer } from "./support/with_deployment.ts";

interface SteadyRun {
  rows: Row[];
  intervals: IntervalFigures[];
}

/** Timeout for events to reach the followers after the last receipt. */
const DELIVERY_TIMEOUT_MS = 10_000;

async function runSteadily(
  deployment: Deployment,
  server: Server,
  options: SteadyOptions,
): Promise<SteadyRun> {
  const { socketPath } = deployment;
  const { clients, batchEvents } = options;
  const peak = await measurePeak(
    { socketPath, serverPid: server.pid, clients, batchEvents },
    options,
  );
  const deliveries = new Deliveries();
  const followers = await Followers.open({
    socketPath,
    count: options.followers,
    after: peak.lastEventId,
    receiver: () => deliveries.receiver(),
  });
  const producers = new Producers({
    socketPath,
    clients,
    batchEvents,
    eventsPerSecond: peak.eventsPerSecond,
    firstBatch: peak.batches,
    onCommitted: (batch) => deliveries.committed(batch),
  });
  const watching = watch({ deployment, server, producers, deliveries }, options);
  try {
    const run = await Promise.race([
      followers.failed,
      producers.ended.then(() => watching),
      watching,
    ]);
    await producers.stop();
    await allDelivered(deliveries);
    return run;
  } finally {
    followers.close();
  }
}

interface Watched {
  deployment: Deployment;
  server: Server;
  producers: Producers;
  deliveries: Deliveries;
}

async function watch(watched: Watched, options: SteadyOptions): Promise<SteadyRun> {
  const { runMs, intervalMs } = options;
  const run: SteadyRun = { rows: [], intervals: [] };
  const startMs = performance.now();
  let cpu = cpuSeconds(watched.server.pid);
  for (let number = 1; number * intervalMs <= runMs; number++) {
    await delay(startMs + number * intervalMs - performance.now());
    const cpuBefore = cpu;
    cpu = cpuSeconds(watched.server.pid);
    const cpuShare = cpu === null ? null : (cpu - cpuBefore!) * 1000 / intervalMs;
    const { row, figures } = await describeInterval(number, cpuShare, watched, intervalMs);
    run.rows.push(row);
    run.intervals.push(figures);
    progress(formatTable([row]).split("\n").slice(number === 1 ? 0 : 1, 2).join("\n"));
  }
  return run;
}

async function describeInterval(
  number: number,
  cpuShare: number | null,
  { deployment, server: { pid }, producers, deliveries }: Watched,
  intervalMs: number,
): Promise<{ row: Row; figures: IntervalFigures }> {
  const { events, latencies: appends } = producers.take();
  const delivered = deliveries.take();
  const figures: IntervalFigures = {
    memoryMb: megabytes(memoryBytes(pid)),
    appendP99Ms: rounded(appends.quantileMs(0.99), 2),
    deliveryP99Ms: rounded(delivered.quantileMs(0.99), 2),
  };
  const { segments, events: sealedEvents } = await sealedPart(deployment);
  const row: Row = {
    "row": `${number}`,
    "events/s": Math.round(events * 1000 / intervalMs),
    "append p50 ms": rounded(appends.quantileMs(0.5), 2),
    "p99 ms": figures.appendP99Ms,
    "p99.9 ms": rounded(appends.quantileMs(0.999), 2),
    "delivery p50 ms": rounded(delivered.quantileMs(0.5), 2),
    "d. p99 ms": figures.deliveryP99Ms,
    "d. p99.9 ms": rounded(delivered.quantileMs(0.999), 2),
    "memory MB": figures.memoryMb,
    "peak MB": megabytes(peakMemoryBytes(pid)),
    "server CPU %": cpuShare === null ? null : Math.round(cpuShare * 100),
    "segments": segments,
    "sealed events": sealedEvents,
    "descriptors": openDescriptors(pid),
  };
  return { row, figures };
}

async function allDelivered(deliveries: Deliveries): Promise<void> {
  const deadlineMs = performance.now() + DELIVERY_TIMEOUT_MS;
  while (deliveries.missing > 0) {
    if (performance.now() > deadlineMs) {
      throw new Error(`${deliveries.missing} batches did not reach a follower`);
    }
    await delay(1);
  }
}

await runBench(async () => {
  const options = parseSteadyOptions(process.argv.slice(2));
  await withDeployment(options, async (deployment) => {
    const disk = probeDisk(deployment.folder);
    const { rows, intervals } = await withServer(
      deployment,
      (server) => runSteadily(deployment, server, options),
    );
    progress("verify --chain");
    const { tookMs, peakBytes } = await deployment.run(["verify", "--chain"], peakMemoryBytes);
    const name = `steady for ${options.runMs / 60_000} minutes`;
    await publish(makeReport(name, options.serverRuntime, disk, rows), options.jsonPath);
    const verified = `verify --chain passed in ${rounded(tookMs / 1000, 1)} s, ` +
      `${megabytes(peakBytes) ?? "-"} MB peak`;
    process.stdout.write([...compareThirds(intervals), verified, ""].join("\n"));
  });
});
