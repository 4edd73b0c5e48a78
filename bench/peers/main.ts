/**
 * Compares the service with its alternatives in one run that alternates between them: Redis Streams
 * and PostgreSQL for serving, DuckDB and sha256sum for sealed history. See ../README.md.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchOptions, parseBenchOptions, progress, runBench } from "../support/options.ts";
import { publish } from "../support/report.ts";
import { PAGE_EVENTS } from "../support/requests.ts";
import { comparisonRows, takeTurns } from "./comparison.ts";
import { ourVariants } from "./ours.ts";
import { findPeer } from "./peer_process.ts";
import { createCluster, postgresVariants } from "./postgres.ts";
import { redisVariants } from "./redis.ts";
import { SEALED_ROWS, SERVED_ROWS } from "./rows.ts";
import { measureSealed } from "./sealed.ts";

/** Short windows and many rounds, so that other load on the machine affects all equally. */
const DEFAULTS = { seconds: "1" };
/** Warm-up relative to the measured time. It is long because of the service's JIT compilation. */
const WARMUP_SHARE = 0.5;
const OURS_WARMUP_SHARE = 1.5;
const REPLAY_EVENTS = 200_000;

/** Whether a peer's programs are installed; if not, prints how to install them. */
function isInstalled(programs: string[], debianPackage: string): boolean {
  const missing = programs.find((program) => findPeer(program) === null);
  if (missing === undefined) return true;
  progress(
    `no ${missing}; its columns stay empty. To install it: apt-get install ${debianPackage}`,
  );
  return false;
}

async function compare(options: BenchOptions, folder: string): Promise<void> {
  const { serverRuntime, rounds, rows, measureMs } = options;
  const events = options.events ?? REPLAY_EVENTS;
  const replayEvents = Math.ceil(events / PAGE_EVENTS) * PAGE_EVENTS;
  const peers = { folder, measureMs, warmupMs: measureMs * WARMUP_SHARE, replayEvents };
  const ours = { ...peers, warmupMs: measureMs * OURS_WARMUP_SHARE };
  const hasRedis = isInstalled(["redis-server", "redis-benchmark"], "redis-server");
  const cluster = isInstalled(["postgres", "initdb", "pgbench", "psql"], "postgresql")
    ? await createCluster(folder)
    : null;
  const variants = rows.filter((row) => SERVED_ROWS.includes(row)).flatMap((row) => [
    ...ourVariants(row, serverRuntime, ours),
    ...hasRedis ? redisVariants(row, peers) : [],
    ...cluster !== null ? postgresVariants(row, cluster, peers) : [],
  ]);
  const series = await takeTurns(variants, rounds);
  if (rows.some((row) => SEALED_ROWS.includes(row))) {
    series.push(...await measureSealed(options, cluster, ours));
  }
  await publish("peers", options, comparisonRows(series));
}

await runBench(async () => {
  const options = parseBenchOptions([...SERVED_ROWS, ...SEALED_ROWS], DEFAULTS);
  const folder = await mkdtemp(join(options.parent ?? tmpdir(), "bench-peers-"));
  try {
    // PostgreSQL's user must be able to access the directory.
    await chmod(folder, 0o711);
    await compare(options, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
});
