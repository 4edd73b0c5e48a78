/** Measures durable appends without a service, as a lower bound for commit latency. */
import { Buffer } from "node:buffer";
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Approximate size of a commit with one typical event. */
const APPEND_BYTES = 1100;
/** Maximum number of appends, enough for a p99. On a slow disk, the time limit comes first. */
const APPENDS_MAX = 500;
const PROBE_MS_MAX = 2000;

/** Latency of a durable append, in milliseconds. */
export interface SyncLatency {
  p50Ms: number;
  p99Ms: number;
}

/** Appends to a file in `directory`, with an fdatasync each time. */
export function probeDisk(directory: string): SyncLatency {
  const latenciesMs: number[] = [];
  const path = join(directory, "disk-probe");
  const file = openSync(path, "a");
  try {
    const data = Buffer.alloc(APPEND_BYTES, "x");
    const endMs = performance.now() + PROBE_MS_MAX;
    while (latenciesMs.length < APPENDS_MAX && performance.now() < endMs) {
      const startMs = performance.now();
      writeSync(file, data);
      fdatasyncSync(file);
      latenciesMs.push(performance.now() - startMs);
    }
  } finally {
    closeSync(file);
    rmSync(path);
  }
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number) => latenciesMs[Math.floor(latenciesMs.length * share)]!;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
