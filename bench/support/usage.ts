/** CPU time that a server and its load generator use during a measurement. */
import process from "node:process";
import { childrenCpuSeconds, treeCpuSeconds } from "./process_stats.ts";

export interface Usage {
  seconds: number;
  /** Of the server with its descendants. Null without /proc. */
  serverCpuSeconds: number | null;
  /** Of this process and its exited children. */
  clientCpuSeconds: number;
}

/** Starts to measure. @returns a function that reports the usage so far. */
export function startUsage(serverPid: number): () => Usage {
  const [serverStart, clientStart] = [treeCpuSeconds(serverPid), clientCpuSeconds()];
  const startMs = performance.now();
  return () => {
    const server = treeCpuSeconds(serverPid);
    return {
      seconds: (performance.now() - startMs) / 1000,
      serverCpuSeconds: server === null ? null : server - (serverStart ?? 0),
      clientCpuSeconds: clientCpuSeconds() - clientStart,
    };
  };
}

function clientCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + (childrenCpuSeconds(process.pid) ?? 0);
}
