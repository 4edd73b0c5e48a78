/**
 * Measures the cost of sealing and the speed of sealed history: sealing, startup, verification,
 * replay, and lookups of keys and batches, before and after sealing. See README.md in this
 * directory.
 */
import process from "node:process";
import type { Deployment } from "./support/deployment.ts";
import { probeDisk } from "./support/disk_probe.ts";
import { answerTimes, ask, type Question } from "./support/exchange.ts";
import { runLoad } from "./support/load.ts";
import { logBytes } from "./support/log_files.ts";
import { parseBenchOptions, progress, runBench } from "./support/options.ts";
import { peakMemoryBytes } from "./support/process_stats.ts";
import { RawClient } from "./support/raw_client.ts";
import { makeReport, megabytes, publish, rounded, type Row } from "./support/report.ts";
import { keyedBatch, keyRequest } from "./support/requests.ts";
import { appendKeyed, withDeployment, withServer } from "./support/with_deployment.ts";
import { replayWorkload } from "./support/workloads.ts";

const LOG_EVENTS = 1_000_000;
const BATCH_EVENTS = 1000;
const PAGE_EVENTS = 1000;
/** Requests of each kind. The first has cold caches; the slowest of the others is reported. */
const QUESTIONS = 50;

/** Forms of the log: as appended, and sealed. */
type Form = "tail" | "sealed";

interface FilledLog {
  deployment: Deployment;
  batches: number;
  events: number;
}

/** Returns a row with all columns. Values that were not measured are null. */
function rowOf(row: string, values: Partial<Row>): Row {
  const columns = ["ms", "slowest ms", "events/s", "bytes/event", "peak MB"];
  const all = Object.fromEntries(columns.map((column) => [column, values[column] ?? null]));
  return { row, ...all };
}

/** Measures a complete run of a command over the log. */
async function commandRow(
  row: string,
  command: string[],
  { deployment, events }: FilledLog,
): Promise<Row> {
  progress(row);
  const { tookMs, peakBytes } = await deployment.run(command, peakMemoryBytes);
  return rowOf(row, {
    "ms": rounded(tookMs, 0),
    "events/s": Math.round(events / tookMs * 1000),
    "peak MB": megabytes(peakBytes),
  });
}

async function openRow(form: Form, { deployment, events }: FilledLog, starts: number) {
  const startsMs: number[] = [];
  let peakBytes: number | null = null;
  for (let start = 0; start < starts; start++) {
    await withServer(deployment, (server) => {
      startsMs.push(server.startMs);
      peakBytes = peakMemoryBytes(server.pid);
      return Promise.resolve();
    });
  }
  startsMs.sort((a, b) => a - b);
  return rowOf(`start-${form}`, {
    "ms": rounded(startsMs[starts >> 1]!, 0),
    "slowest ms": rounded(startsMs.at(-1)!, 0),
    "bytes/event": rounded(await logBytes(deployment) / events, 1),
    "peak MB": megabytes(peakBytes),
  });
}

async function replayRow(form: Form, log: FilledLog, measureMs: number): Promise<Row> {
  const { deployment, events } = log;
  return await withServer(deployment, async (server) => {
    const load = await runLoad({
      socketPath: deployment.socketPath,
      serverPid: server.pid,
      workloads: [replayWorkload({ events, pageEvents: PAGE_EVENTS })],
      warmupMs: 0,
      measureMs,
      eventsMax: Infinity,
    });
    return rowOf(`replay-${form}`, {
      "ms": rounded(load.latencies.quantileMs(0.5), 2),
      "slowest ms": rounded(load.latencies.quantileMs(1), 2),
      "events/s": Math.round(load.events / load.seconds),
      "peak MB": megabytes(peakMemoryBytes(server.pid)),
    });
  });
}

/** Sends requests one after another to a new server, each for a different part of the log. */
async function questionRows(
  name: string,
  { deployment, batches }: FilledLog,
  questionAbout: (batch: number) => Question,
): Promise<Row[]> {
  return await withServer(deployment, async (server) => {
    const client = await RawClient.connect(deployment.socketPath);
    const tookMs: number[] = [];
    for (let number = 0; number < QUESTIONS; number++) {
      // The step is coprime to most counts, so that consecutive requests are not neighbors.
      tookMs.push((await ask(client, questionAbout(number * 7919 % batches))).tookMs);
    }
    client.close();
    const { firstMs, p50Ms, slowestMs } = answerTimes(tookMs);
    return [
      rowOf(`${name}-cold`, { "ms": rounded(firstMs, 2) }),
      rowOf(`${name}-warm`, {
        "ms": rounded(p50Ms, 2),
        "slowest ms": rounded(slowestMs, 2),
        "peak MB": megabytes(peakMemoryBytes(server.pid)),
      }),
    ];
  });
}

/** Measures the log in one of its forms. */
async function formRows(form: Form, log: FilledLog, starts: number, measureMs: number) {
  progress(`measuring the ${form} log`);
  return [
    await openRow(form, log, starts),
    await commandRow(`verify-${form}`, ["verify"], log),
    await commandRow(`verify-chain-${form}`, ["verify", "--chain"], log),
    await replayRow(form, log, measureMs),
    ...await questionRows(`key-${form}`, log, (batch) => {
      const key = batch * BATCH_EVENTS + BATCH_EVENTS - 1;
      return { request: keyRequest(key), expected: '"last_event_id"' };
    }),
    ...await questionRows(`duplicate-${form}`, log, (batch) => ({
      request: keyedBatch(batch, BATCH_EVENTS),
      expected: '"status":"duplicate"',
    })),
  ];
}

await runBench(async () => {
  const options = parseBenchOptions(process.argv.slice(2), ["all"]);
  const batches = Math.ceil((options.events ?? LOG_EVENTS) / BATCH_EVENTS);
  await withDeployment(options, async (deployment) => {
    const disk = probeDisk(deployment.folder);
    const log = { deployment, batches, events: batches * BATCH_EVENTS };
    progress(`appending ${log.batches} batches of ${BATCH_EVENTS} events`);
    await appendKeyed(log.deployment, { batches: log.batches, batchEvents: BATCH_EVENTS });
    const rows = [
      ...await formRows("tail", log, options.starts, options.measureMs),
      await commandRow("seal", ["seal"], log),
      ...await formRows("sealed", log, options.starts, options.measureMs),
    ];
    const name = `sealing ${log.events} events`;
    await publish(makeReport(name, options.serverRuntime, disk, rows), options.jsonPath);
  });
});
