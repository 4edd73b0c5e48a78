/** CPU time that a server, the load generator and the whole machine use during a measurement. */
import { cpus } from "node:os";
import process from "node:process";
import { childrenCpuSeconds, treeCpuSeconds } from "./process_stats.ts";

export interface Usage {
  seconds: number;
  /** Null without /proc. */
  serverCpuSeconds: number | null;
  clientCpuSeconds: number;
  machineCpuSeconds: number;
}

/** The measured processes; each function returns CPU seconds so far. */
export interface UsageOf {
  server: () => number | null;
  client: () => number;
}

/** A running server with its descendants. The client is this process and its exited children. */
export function usageOfServer(pid: number): UsageOf {
  return {
    server: () => treeCpuSeconds(pid),
    client: () => ownCpuSeconds() + (childrenCpuSeconds(process.pid) ?? 0),
  };
}

/** Commands that this process runs to completion. */
export const USAGE_OF_COMMANDS: UsageOf = {
  server: () => childrenCpuSeconds(process.pid),
  client: ownCpuSeconds,
};

/** Work in this process. */
export const USAGE_OF_THIS_PROCESS: UsageOf = { server: ownCpuSeconds, client: () => 0 };

/** Starts to measure. @returns a function that reports the usage so far. */
export function startUsage({ server, client }: UsageOf): () => Usage {
  const read = () => ({ server: server(), client: client(), machine: machineCpuSeconds() });
  const start = read();
  const startMs = performance.now();
  return () => {
    const seconds = (performance.now() - startMs) / 1000;
    const end = read();
    return {
      seconds,
      serverCpuSeconds: end.server === null ? null : end.server - (start.server ?? 0),
      clientCpuSeconds: end.client - start.client,
      machineCpuSeconds: end.machine - start.machine,
    };
  };
}

function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Returns the busy time of all cores together. */
function machineCpuSeconds(): number {
  const times = cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq);
  return times.reduce((sum, each) => sum + each, 0) / 1000;
}
