/**
 * Measures replay in pages of 1,000 events: of the whole log, and of single pages at its beginning,
 * middle and end, which must all take the same time. See README.md in this directory.
 */
import process from "node:process";
import { type Deployment, ROTATE_NEVER_BYTES, type Server } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { runLoad, type Workload } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { loadRow, makeReport, publish, type Row } from "./support/report.ts";
import { pageRequest } from "./support/requests.ts";
import { fill, withDeployment, withServer } from "./support/with_deployment.ts";
import {
  pagePosition,
  pageWorkload,
  type ReplayedLog,
  replayWorkload,
} from "./support/workloads.ts";

const LOG_EVENTS = 200_000;
const BATCH_EVENTS = 1000;
const PAGE_EVENTS = 1000;

interface FilledLog extends ReplayedLog {
  /** The event before each page. */
  pageStarts: (string | null)[];
}

/** The clients for each row, and the pages that they read. */
const ROWS: Record<string, (log: FilledLog) => Workload[]> = {
  "all-1": (log) => [replayWorkload(log)],
  "all-4": (log) => Array.from({ length: 4 }, () => replayWorkload(log)),
  "page-first": (log) => [pageWorkload(log.pageStarts[0]!, log.pageEvents)],
  "page-middle": ({ pageStarts, pageEvents }) => [
    pageWorkload(pageStarts[pageStarts.length >> 1]!, pageEvents),
  ],
  "page-last": (log) => [pageWorkload(log.pageStarts.at(-1)!, log.pageEvents)],
};

/** Fills the log and reads it once, to learn its event ids and warm the page cache. */
async function prepareLog(deployment: Deployment, events: number): Promise<FilledLog> {
  progress(`filling ${events} events`);
  const filled = await withServer(
    deployment,
    (server) => fill(deployment, server, { events, batchEvents: BATCH_EVENTS, clients: 1 }),
    ROTATE_NEVER_BYTES,
  );
  const pageStarts = await withServer(deployment, () => readPageStarts(deployment.socketPath));
  return { events: filled.eventsInAll, pageEvents: PAGE_EVENTS, pageStarts };
}

async function readPageStarts(socketPath: string): Promise<(string | null)[]> {
  const client = await RawClient.connect(socketPath);
  try {
    const starts: (string | null)[] = [null];
    while (true) {
      const response = await client.exchange(pageRequest(starts.at(-1)!, PAGE_EVENTS));
      const { nextAfter, snapshotThrough } = pagePosition(response.bodyEnd);
      if (nextAfter === snapshotThrough) return starts;
      starts.push(nextAfter);
    }
  } finally {
    client.close();
  }
}

async function measureRow(
  name: string,
  deployment: Deployment,
  log: FilledLog,
  options: BenchOptions,
): Promise<Row> {
  progress(name);
  return await withServer(deployment, async (server: Server) => {
    const load = await runLoad({
      socketPath: deployment.socketPath,
      serverPid: server.pid,
      workloads: ROWS[name]!(log),
      warmupMs: options.warmupMs,
      measureMs: options.measureMs,
      eventsMax: Infinity,
    });
    return loadRow(name, load, peakMemoryBytes(server.pid));
  });
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), Object.keys(ROWS));
  await withDeployment(options, async (deployment) => {
    const disk = probeDisk(deployment.folder);
    const log = await prepareLog(deployment, options.events ?? LOG_EVENTS);
    const rows: Row[] = [];
    for (const name of options.rows) rows.push(await measureRow(name, deployment, log, options));
    const report = makeReport(`replay of ${log.events} events`, options.serverRuntime, disk, rows);
    await publish(report, options.jsonPath);
  });
});
