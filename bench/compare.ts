/**
 * Measures this checkout or, with `--base`, compares its speed with that of another one. Each round
 * measures every row once per checkout, alternating between the two. A row's ratio is the median
 * across the rounds. See README.md in this directory.
 */
import { once } from "node:events";
import { cp } from "node:fs/promises";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { TAIL_ROTATE_BYTES } from "../src/limits.ts";
import { measureDelivery } from "./support/delivery.ts";
import { ask } from "./support/exchange.ts";
import { LatencyHistogram } from "./support/latency_histogram.ts";
import { runLoad, type Workload } from "./support/load.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "./support/options.ts";
import { sealedPart } from "./support/log_files.ts";
import { RawClient } from "./support/raw_client.ts";
import { publish, rounded, type Row } from "./support/report.ts";
import { getRequest, PAGE_EVENTS } from "./support/requests.ts";
import {
  appendKeyed,
  Deployment,
  type DeploymentOptions,
  ROTATE_NEVER_BYTES,
  withDeployment,
  withServer,
} from "./support/deployment.ts";
import {
  INGEST_LOADS,
  type IngestLoad,
  ingestWorkloads,
  keyWorkload,
  replayWorkload,
} from "./support/workloads.ts";
import { median } from "../tools/support/median.ts";
import { OWN_CHECKOUT } from "../tools/support/program.ts";

const DEFAULTS = { seconds: "3", events: "200000", rounds: "5" };
/** Pause between listings of streams, which thus take little time from the replay. */
const STREAMS_PAUSE_MS = 2;
/** Sealing takes several windows, since it is throttled while little is unsealed. */
const SEALED_WINDOWS = 5;
/** Tail size at which the server seals, small enough for several seals per measurement. */
const SEALED_ROTATE_BYTES = TAIL_ROTATE_BYTES / 8;

interface CompareOptions extends BenchOptions {
  /** Number of events in the log that is replayed, sealed and verified. */
  events: number;
}

/** One of the two checkouts, with its own log, which is never modified. */
interface Side extends DeploymentOptions {
  unsealed: Deployment;
  sealed: Deployment;
}

/** Values from one measurement: of its row, or by row. */
type Values = number | Record<string, number>;

/** Rows for which lower is better. All other rows report rates. */
const isCost = (row: string) => row.endsWith(" ms") || row.startsWith("bytes");

type Measurement = (side: Side, options: CompareOptions) => Promise<Values>;

const MEASUREMENTS: Record<string, Measurement> = {
  ...Object.fromEntries(
    Object.values(INGEST_LOADS).map((ingest) => [ingest.label, appends(ingest)]),
  ),
  "bytes allocated": allocatedBytes,
  "replay of the tail": ({ unsealed }, options) => replayRate(unsealed, options),
  "delivery": deliveryTimes,
  "seal": sealRate,
  "verify of segments": ({ sealed }, options) => commandRate(["verify"], sealed, options),
  "verify --chain of segments": ({ sealed }, options) =>
    commandRate(["verify", "--chain"], sealed, options),
  "replay of segments": ({ sealed }, options) => replayRate(sealed, options),
  "streams beside a replay of segments": streamsBesideReplay,
  "sealing beside 4 clients with batches of 1,000": sealingRate,
  "key lookup": keyTimes,
  "start": startTimes,
};

/** Runs a load after a warm-up. */
function runIn(deployment: Deployment, workloads: Workload[], options: CompareOptions) {
  const { warmupMs, measureMs } = options;
  const { socketPath } = deployment;
  return withServer(
    deployment,
    ({ pid: serverPid }) => runLoad({ socketPath, serverPid, workloads, warmupMs, measureMs }),
  );
}

/** Returns the rate of a load. */
async function rateOf(...load: Parameters<typeof runIn>): Promise<number> {
  const { events, seconds } = await runIn(...load);
  return Math.round(events / seconds);
}

function appends(ingest: IngestLoad): Measurement {
  return (side, options) =>
    withDeployment(side, (deployment) => rateOf(deployment, ingestWorkloads(ingest), options));
}

function replayRate(deployment: Deployment, options: CompareOptions): Promise<number> {
  return rateOf(deployment, [replayWorkload(options.events)], options);
}

async function commandRate(command: string[], deployment: Deployment, { events }: CompareOptions) {
  const { tookMs } = await deployment.run(command);
  return Math.round(events / tookMs * 1000);
}

/** What V8 prints about a collection: the sizes of the heap before and after, in MB. */
const COLLECTION = / ms: .*? ([0-9.]+) \([0-9.]+\) -> ([0-9.]+) \(/g;

/** Sums what the heap grew by between the collections that V8 printed. */
function heapGrowthMb(printed: string): number {
  let grownMb = 0;
  let leftMb: number | null = null;
  for (const [, before, after] of printed.matchAll(COLLECTION)) {
    grownMb += leftMb === null ? 0 : Number(before) - leftMb;
    leftMb = Number(after);
  }
  return grownMb;
}

/** Deno prints no collections to a pipe. */
async function allocatedBytes(
  side: Side,
  { warmupMs, measureMs }: CompareOptions,
): Promise<Values> {
  if (side.serverRuntime !== "node") return {};
  return await withDeployment(side, (deployment) =>
    withServer(
      deployment,
      async (server) => {
        const { socketPath } = deployment;
        const workloads = ingestWorkloads(INGEST_LOADS["single-64"]!);
        const load = { socketPath, serverPid: server.pid, workloads };
        await runLoad({ ...load, measureMs: warmupMs });
        const startChars = server.output.stdout.length;
        const { events } = await runLoad({ ...load, measureMs });
        const grownBytes = heapGrowthMb(server.output.stdout.slice(startChars)) * 2 ** 20;
        return { "bytes allocated per event, 64 clients": Math.round(grownBytes / events) };
      },
      { rotateBytes: ROTATE_NEVER_BYTES, v8Flags: ["--trace-gc"] },
    ));
}

/** Lists no streams, again and again, while another client replays segments. */
function streamsBesideReplay({ sealed }: Side, options: CompareOptions): Promise<Values> {
  const { events, measureMs } = options;
  const question = {
    request: getRequest("/v1/streams?source=none"),
    expected: '"streams":[]',
  };
  return withServer(sealed, async ({ pid: serverPid }) => {
    const { socketPath } = sealed;
    const client = await RawClient.connect(socketPath);
    const latencies = new LatencyHistogram();
    const workerData = { events, socketPath, serverPid, measureMs };
    const replay = new Worker(new URL("./support/replay_thread.ts", import.meta.url), {
      workerData,
    });
    let isDone = false;
    const load = once(replay, "exit").finally(() => isDone = true);
    while (!isDone) {
      latencies.record((await ask(client, question)).tookMs);
      await delay(STREAMS_PAUSE_MS);
    }
    await load;
    client.close();
    return { "streams beside a replay of segments p99 ms": rounded(latencies.quantileMs(0.99), 3) };
  });
}

/** Measures how fast the service seals in the background while clients append. */
function sealingRate(side: Side, { measureMs }: CompareOptions): Promise<Values> {
  return withDeployment(side, (deployment) =>
    withServer(deployment, async ({ pid: serverPid }) => {
      const { socketPath } = deployment;
      const workloads = ingestWorkloads(INGEST_LOADS["batch-1000-4"]!);
      const startMs = Date.now();
      const options = { socketPath, serverPid, workloads, measureMs: SEALED_WINDOWS * measureMs };
      await runLoad(options);
      return await sealedPerSecond(deployment, startMs);
    }, { rotateBytes: SEALED_ROTATE_BYTES }));
}

/** Returns the rate until the last segment was listed, since the next one may be half written. */
async function sealedPerSecond(deployment: Deployment, startMs: number): Promise<number> {
  const { events, lastMs } = await sealedPart(deployment);
  if (events === 0) throw new Error("nothing was sealed; raise --seconds");
  return Math.round(events / (lastMs - startMs) * 1000);
}

function deliveryTimes(side: Side, { warmupMs, measureMs }: CompareOptions): Promise<Values> {
  return withDeployment(side, (deployment) =>
    withServer(deployment, async ({ pid: serverPid }) => {
      const { socketPath } = deployment;
      const times = { socketPath, serverPid, warmupMs, measureMs };
      const { fromAck, fromSend } = await measureDelivery(times);
      return {
        "delivery p50 ms": rounded(fromSend.quantileMs(0.5), 3),
        "delivery p99 ms": rounded(fromSend.quantileMs(0.99), 3),
        "delivery after the receipt, p50 ms": rounded(fromAck.quantileMs(0.5), 3),
        "delivery after the receipt, p99 ms": rounded(fromAck.quantileMs(0.99), 3),
      };
    }));
}

/** Seals a copy, so that each round seals the same log. */
async function sealRate(side: Side, options: CompareOptions): Promise<Values> {
  const copy = await copyLog(side, side.unsealed, "copy");
  return await commandRate(["seal"], copy, options).finally(() => copy.remove());
}

async function keyTimes({ sealed }: Side, options: CompareOptions): Promise<Values> {
  const { latencies } = await runIn(sealed, [keyWorkload(options.events)], options);
  return { "key lookup p50 ms": rounded(latencies.quantileMs(0.5), 3) };
}

async function startTimes({ unsealed }: Side): Promise<Values> {
  const startMs = await withServer(unsealed, ({ startMs }) => startMs);
  return { "start with the log in the tail ms": Math.round(startMs) };
}

/** Fills a log whose events stay in the tail, and seals a copy. */
async function prepareSide(checkout: string, options: CompareOptions): Promise<Side> {
  const { events, parent, serverRuntime } = options;
  const side = { checkout, parent, serverRuntime };
  progress(`filling ${events} events: ${checkout}`);
  const unsealed = await Deployment.create(side);
  await appendKeyed(unsealed, events / PAGE_EVENTS);
  const sealed = await copyLog(side, unsealed, "sealed");
  await sealed.run(["seal"]);
  return { ...side, unsealed, sealed };
}

async function copyLog(
  options: DeploymentOptions,
  { folder }: Deployment,
  name: string,
): Promise<Deployment> {
  const copy = `${folder}-${name}`;
  await cp(folder, copy, { recursive: true, filter: (path) => !path.endsWith(".sock") });
  return await Deployment.at(copy, options);
}

/** The values of each row, by checkout and by round. */
type Rounds = Map<string, number[][]>;

/** @param order places of the sides in the order in which they are measured. */
async function measureRound(
  sides: Side[],
  options: CompareOptions,
  rounds: Rounds,
  order: number[],
): Promise<void> {
  for (const name of options.rows) {
    progress(name);
    for (const place of order) {
      const values = await MEASUREMENTS[name]!(sides[place]!, options);
      const byRow = typeof values === "number" ? { [name]: values } : values;
      for (const [row, value] of Object.entries(byRow)) {
        if (!rounds.has(row)) rounds.set(row, sides.map(() => []));
        rounds.get(row)![place]!.push(value);
      }
    }
  }
}

/** Returns a table row, with how many times faster this checkout is than the base. */
function rowOf(row: string, [ours, base]: number[][]): Row {
  if (base === undefined) {
    return { row, "ours": median(ours!), "least": Math.min(...ours!), "most": Math.max(...ours!) };
  }
  const ratios = ours!.map((value, round) =>
    isCost(row) ? base[round]! / value : value / base[round]!
  );
  return {
    row,
    "ours": median(ours!),
    "base": median(base),
    "ratio": rounded(median(ratios), 2),
    "least": rounded(Math.min(...ratios), 2),
    "most": rounded(Math.max(...ratios), 2),
  };
}

await runBench(async () => {
  const given = parseBenchOptions(Object.keys(MEASUREMENTS), DEFAULTS, ["base"]);
  const events = Math.ceil(given.events! / PAGE_EVENTS) * PAGE_EVENTS;
  const options: CompareOptions = { ...given, events };
  const { rounds: roundsMax, own: { base } } = options;
  const sides: Side[] = [];
  try {
    sides.push(await prepareSide(OWN_CHECKOUT, options));
    if (base !== undefined) sides.push(await prepareSide(resolve(base), options));
    const rounds: Rounds = new Map();
    for (let round = 1; round <= roundsMax; round++) {
      progress(`round ${round} of ${roundsMax}`);
      // The order alternates, because going first may be an advantage.
      const order = [...sides.keys()];
      await measureRound(sides, options, rounds, round % 2 === 0 ? order.reverse() : order);
    }
    const rows = [...rounds].map(([row, values]) => rowOf(row, values));
    const name = base === undefined ? "compare" : `compare with ${base}`;
    await publish(name, options, rows);
  } finally {
    for (const { unsealed, sealed } of sides) {
      await unsealed.remove();
      await sealed.remove();
    }
  }
});
