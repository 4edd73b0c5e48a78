/**
 * The peers' own load generators, for single events. They use less CPU time than one in JavaScript,
 * which leaves more for the server on a small machine. A short run warms up the server and
 * determines how many requests fill the measured time.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BENCH_SOURCE } from "../support/requests.ts";
import type { BenchEvent } from "./events.ts";
import { type Measurement, serverClock } from "./measurement.ts";
import { findPeer, runProgram } from "./peer_process.ts";
import { type Postgres, POSTGRES_USER } from "./postgres_server.ts";
import type { Redis } from "./redis_server.ts";

/** Requests per client in the short run. */
const PILOT_REQUESTS = 100;

/** Figures that a tool reports. */
interface ToolReport {
  perSecond: number;
  p50Ms: number | null;
  p99Ms: number | null;
}

/** @param words the command for each request. */
export async function runRedisBenchmark(
  redis: Redis,
  clients: number,
  words: string[],
  measureMs: number,
): Promise<Measurement> {
  const program = requireProgram("redis-benchmark");
  return await measureTool(redis.pid, clients, measureMs, async (requests) => {
    const counts = ["-c", String(clients), "-n", String(requests)];
    const options = ["-s", redis.socketPath, ...counts, "--csv"];
    return parseRedisBenchmark(await runProgram(program, [...options, ...words]));
  });
}

export async function runPgbench(
  postgres: Postgres,
  clients: number,
  event: BenchEvent,
  measureMs: number,
): Promise<Measurement> {
  const program = requireProgram("pgbench");
  const columns = { source: BENCH_SOURCE, ...event, payload: JSON.stringify(event.payload) };
  const names = Object.keys(columns);
  const values = names.map((name) => `:${name}`);
  const script = join(postgres.socketFolder, "pgbench.sql");
  const insert = `INSERT INTO events (${names.join(", ")}) VALUES (${values.join(", ")});\n`;
  await writeFile(script, insert);
  try {
    return await measureTool(postgres.pid, clients, measureMs, async (requests) => {
      const args = ["-h", postgres.socketFolder, "-U", POSTGRES_USER, "-n", "-M", "prepared"];
      const each = Math.ceil(requests / clients);
      args.push("-f", script, "-c", String(clients), "-t", String(each));
      for (const [name, value] of Object.entries(columns)) args.push("-D", `${name}=${value}`);
      return parsePgbench(await runProgram(program, [...args, "postgres"]));
    });
  } finally {
    await rm(script);
  }
}

function requireProgram(name: string): string {
  const path = findPeer(name);
  if (path === null) throw new Error(`${name} is not installed`);
  return path;
}

async function measureTool(
  serverPid: number,
  clients: number,
  measureMs: number,
  run: (requests: number) => Promise<ToolReport>,
): Promise<Measurement> {
  const pilot = await run(PILOT_REQUESTS * clients);
  // Rounded up, so that all clients send the same number of requests.
  const requests = Math.ceil(pilot.perSecond * measureMs / 1000 / clients) * clients;
  const clock = serverClock(serverPid);
  const { perSecond, p50Ms, p99Ms } = await run(requests);
  // The rate that the tool reports excludes its startup.
  return { ...clock.stop(requests), eventsPerSecond: perSecond, p50Ms, p99Ms };
}

/** Parses the `redis-benchmark --csv` line, using its header to find the columns. */
export function parseRedisBenchmark(output: string): ToolReport {
  const [names, cells] = output.trim().split("\n").slice(-2)
    .map((line) => line.slice(1, -1).split('","'));
  // Count from the end, because the first cell is the command, which may contain separators.
  const cell = (name: string) => Number(cells?.at(names!.indexOf(name) - names!.length));
  const report = {
    perSecond: cell("rps"),
    p50Ms: cell("p50_latency_ms"),
    p99Ms: cell("p99_latency_ms"),
  };
  if (!(report.perSecond > 0)) throw new Error(`redis-benchmark printed no rate: ${output}`);
  return report;
}

/** Parses the rate at the end of pgbench's output. */
export function parsePgbench(output: string): ToolReport {
  const perSecond = Number(/^tps = ([0-9.]+) /m.exec(output)?.[1]);
  if (!(perSecond > 0)) throw new Error(`pgbench printed no rate: ${output}`);
  return { perSecond, p50Ms: null, p99Ms: null };
}
