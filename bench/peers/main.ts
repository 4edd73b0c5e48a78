/**
 * Compares the service with its alternatives in one run that alternates between them: Redis Streams
 * and PostgreSQL for serving, DuckDB and sha256sum for sealed history. See ../README.md.
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { probeDisk } from "../support/disk_probe.ts";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "../support/options.ts";
import { formatTable, makeReport, publish } from "../support/report.ts";
import { comparisonRows, detailRows, segmentsGoal } from "./comparison.ts";
import { floorSubject } from "./floor.ts";
import { oursSubject } from "./ours.ts";
import { findPeer } from "./peer_process.ts";
import { postgresSubject } from "./postgres.ts";
import {
  createPostgresCluster,
  POSTGRES_INSTALL,
  type PostgresCluster,
} from "./postgres_server.ts";
import { redisSubject } from "./redis.ts";
import { REDIS_INSTALL } from "./redis_server.ts";
import { type BenchContext, SEALED_ROWS, SERVED_ROWS, type Subject } from "./rows.ts";
import { measureSealed } from "./sealed.ts";
import { takeTurns, type Turn, turnOf } from "./turns.ts";

/**
 * Short windows and many rounds, so that other load on the machine affects all subjects equally.
 */
const DEFAULT_ARGS = ["--seconds", "1"];
/** Warm-up relative to the measured time. It is long because of the service's JIT compilation. */
const WARMUP_SHARE = 0.5;
const OURS_WARMUP_SHARE = 1.5;
const REPLAY_EVENTS = 200_000;
/** Enough that startup is a small part of the time that `seal` and `verify` take. */
const SEALED_EVENTS = 3_000_000;

/** Returns the installed peers, each with its servers, and prints how to install the others. */
async function findPeers(context: BenchContext) {
  const subjects: Subject[] = [];
  let cluster: PostgresCluster | null = null;
  if (findPeer("redis-server") === null) {
    progress(`no redis-server; its columns stay empty. To install it: ${REDIS_INSTALL}`);
  } else {
    subjects.push(redisSubject(context));
  }
  if (findPeer("postgres") === null) {
    progress(`no PostgreSQL; its columns stay empty. To install it: ${POSTGRES_INSTALL}`);
  } else {
    cluster = await createPostgresCluster(context.folder);
    subjects.push(postgresSubject(cluster, context));
  }
  return { subjects, cluster };
}

/** Measures the variants of each subject in each row, alternating between them. */
function servedTurns(rows: string[], subjects: Subject[]): Turn[] {
  return rows.flatMap((row) =>
    subjects.flatMap(({ name, variantsOf }) =>
      variantsOf(row).map((variant) => turnOf(row, name, variant))
    )
  );
}

async function compare(options: BenchOptions, folder: string): Promise<void> {
  const { serverRuntime, starts: rounds, rows: asked } = options;
  const context: BenchContext = {
    folder,
    warmupMs: options.measureMs * WARMUP_SHARE,
    measureMs: options.measureMs,
    replayEvents: options.events ?? REPLAY_EVENTS,
  };
  const ours = { ...context, warmupMs: options.measureMs * OURS_WARMUP_SHARE };
  const disk = probeDisk(folder);
  const { subjects, cluster } = await findPeers(context);
  const served = asked.filter((row) => SERVED_ROWS.includes(row));
  const own = [oursSubject(serverRuntime, ours), floorSubject(serverRuntime, ours)];
  const turns = servedTurns(served, [...own, ...subjects]);
  const series = await takeTurns(turns, rounds);
  const rows = asked.filter((row) => SEALED_ROWS.includes(row));
  if (rows.length > 0) {
    const events = options.events ?? SEALED_EVENTS;
    const sealed = { rows, rounds, events, serverRuntime, cluster };
    series.push(...await measureSealed(sealed, ours));
  }
  if (rows.includes("replay-segments")) series.push(...segmentsGoal(series));
  const report = makeReport("peers", serverRuntime, disk, comparisonRows(series));
  await publish(report, undefined);
  const details = detailRows(series);
  process.stdout.write(`\n${formatTable(details)}`);
  if (options.jsonPath !== undefined) {
    await writeFile(options.jsonPath, JSON.stringify({ ...report, details }, null, 2) + "\n");
  }
}

await runBench(async () => {
  const args = [...DEFAULT_ARGS, ...process.argv.slice(2)];
  const options = parseBenchOptions(args, [...SERVED_ROWS, ...SEALED_ROWS]);
  const folder = await mkdtemp(join(options.parent ?? tmpdir(), "bench-peers-"));
  try {
    // PostgreSQL's user must be able to access the directory.
    await chmod(folder, 0o711);
    await compare(options, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
});
