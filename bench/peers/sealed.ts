/**
 * The rows about sealed history, all on one log. Each round appends a part of the log and seals it,
 * alternating with DuckDB. Queries follow once the whole log is sealed.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Deployment, ROTATE_NEVER_BYTES } from "../support/deployment.ts";
import type { Workload } from "../support/load.ts";
import { progress } from "../support/options.ts";
import { keyedBatch, keyRequest } from "../support/requests.ts";
import { withDeployment, withServer } from "../support/with_deployment.ts";
import { replayWorkload } from "../support/workloads.ts";
import type { RuntimeName } from "../support/deployment.ts";
import type { Series } from "./comparison.ts";
import { copyToParquet } from "./duckdb_copy.ts";
import { commandClock, type Measurement } from "./measurement.ts";
import { openOurs } from "./our_delivery.ts";
import { measureWorkloads } from "./ours.ts";
import { findPeer, runProgram } from "./peer_process.ts";
import { KeyedTable } from "./postgres_keys.ts";
import { type PostgresCluster, withPostgres } from "./postgres_server.ts";
import { type BenchContext, FILL_BATCH_EVENTS, PAGE_EVENTS } from "./rows.ts";
import { takeTurns, type Turn, turnOf } from "./turns.ts";

/** Step between lookups. It is coprime to most counts, so consecutive ones are not neighbors. */
const KEY_STEP = 7919;

export interface SealedOptions {
  rows: string[];
  rounds: number;
  /** Number of events in the whole log. Each round is rounded up to full batches. */
  events: number;
  serverRuntime: RuntimeName;
  /** Null if PostgreSQL is not installed. */
  cluster: PostgresCluster | null;
}

/** The log that all rows share. */
interface SealedLog {
  deployment: Deployment;
  events: number;
}

export async function measureSealed(
  options: SealedOptions,
  context: BenchContext,
): Promise<Series[]> {
  const { serverRuntime, rows, rounds, cluster } = options;
  const has = (row: string) => rows.includes(row);
  return await withDeployment({ serverRuntime, parent: context.folder }, async (deployment) => {
    const sealing = await appendAndSeal(deployment, options, context);
    const log = { deployment, events: sealing.events };
    const series = has("seal") ? sealing.series : [];
    const ours = (row: string, measure: () => Promise<Measurement>): Turn =>
      turnOf(row, "ours", { name: serverRuntime, isSameWork: false, measure });
    const turns: Turn[] = [];
    if (has("replay-segments")) {
      const workload = replayWorkload({ events: log.events, pageEvents: PAGE_EVENTS });
      turns.push(ours("replay-segments", () => measureServed(log, workload, context)));
    }
    if (has("verify")) {
      turns.push(ours("verify", () => measureVerify(log)), ...await checksumTurns(log));
    }
    series.push(...await takeTurns(turns, rounds));
    if (has("key-lookup")) {
      const lookup = ours(
        "key-lookup",
        () => measureServed(log, keyWorkload(log.events), context),
      );
      series.push(...await measureLookups(lookup, log, { rounds, cluster }, context));
    }
    return series;
  });
}

async function appendAndSeal(
  deployment: Deployment,
  { events, rounds, serverRuntime }: SealedOptions,
  { folder }: BenchContext,
) {
  const batches = Math.ceil(events / rounds / FILL_BATCH_EVENTS);
  const roundEvents = batches * FILL_BATCH_EVENTS;
  const tail = join(deployment.folder, "data", "log", "tail.ndjson");
  const ours = turnOf("seal", "ours", {
    name: serverRuntime,
    isSameWork: false,
    measure: () => measureCommand(roundEvents, () => deployment.run(["seal"], () => null)),
  });
  const duckdb = turnOf("seal", "DuckDB", {
    name: "COPY TO parquet",
    isSameWork: false,
    measure: () => copyToParquet(tail, folder),
  });
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1}/${rounds}: appending and sealing ${roundEvents} events`);
    await appendKeyed(deployment, round * batches, batches);
    // DuckDB first, because sealing removes its input.
    for (const { series, variant } of [duckdb, ours]) series.rounds.push(await variant.measure());
  }
  return { series: [ours.series, duckdb.series], events: roundEvents * rounds };
}

async function appendKeyed(deployment: Deployment, first: number, batches: number): Promise<void> {
  await withServer(deployment, async () => {
    const client = await openOurs(deployment.socketPath);
    for (let number = first; number < first + batches; number++) {
      const response = await client.exchange(keyedBatch(number, FILL_BATCH_EVENTS));
      if (!response.bodyEnd.includes('"status":"committed"')) {
        throw new Error(`status ${response.status}: ${response.bodyEnd}`);
      }
    }
    client.close();
  }, ROTATE_NEVER_BYTES);
}

async function measureCommand(events: number, run: () => Promise<unknown>): Promise<Measurement> {
  const clock = commandClock();
  await run();
  return clock.stop(events);
}

function measureVerify({ deployment, events }: SealedLog): Promise<Measurement> {
  return measureCommand(events, () => deployment.run(["verify"], () => null));
}

/** Runs sha256sum on the segments, if it is installed. */
async function checksumTurns({ deployment, events }: SealedLog): Promise<Turn[]> {
  const program = findPeer("sha256sum");
  if (program === null) return [];
  const folder = join(deployment.folder, "data", "log", "segments");
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  const measure = () => measureCommand(events, () => runProgram(program, paths));
  return [turnOf("verify", "sha256sum", { name: "of the files", isSameWork: false, measure })];
}

function measureServed(
  { deployment }: SealedLog,
  workload: Workload,
  context: BenchContext,
): Promise<Measurement> {
  return withServer(
    deployment,
    (server) => measureWorkloads([workload], deployment, server, context),
  );
}

/** Looks up keys one after another, each in a different part of the log. */
function keyWorkload(events: number): Workload {
  let number = 0;
  return {
    next: () => keyRequest(number++ * KEY_STEP % events),
    accept(response) {
      if (response.status !== 200 || !response.bodyEnd.includes('"last_event_id"')) {
        throw new Error(`key not found, status ${response.status}: ${response.bodyEnd}`);
      }
      return 1;
    },
    bytes: (_, response) => response.bodyBytes,
  };
}

/** Measures the service's lookups, alternating with an indexed table if PostgreSQL is installed. */
async function measureLookups(
  lookup: Turn,
  { events }: SealedLog,
  { rounds, cluster }: { rounds: number; cluster: PostgresCluster | null },
  context: BenchContext,
): Promise<Series[]> {
  if (cluster === null) return await takeTurns([lookup], rounds);
  return await withPostgres(cluster, async (postgres) => {
    progress(`filling a table with ${events} events`);
    const table = await KeyedTable.fill(postgres, events);
    const measure = () => table.measureLookups(KEY_STEP, context);
    const indexed = turnOf("key-lookup", "PostgreSQL", {
      name: "SELECT by index",
      isSameWork: false,
      measure,
    });
    return await takeTurns([lookup, indexed], rounds);
  });
}
