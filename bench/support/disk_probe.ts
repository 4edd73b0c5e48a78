/** Measures durable appends without a server, as a lower bound for commit latency. */
import { Buffer } from "node:buffer";
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { LatencyHistogram } from "./latency_histogram.ts";

/** Approximate size of a commit with one typical event. */
const APPEND_BYTES = 1100;

/** Maximum number of appends, enough for a p99. A slow disk does fewer within the time limit. */
const APPENDS_MAX = 500;
const PROBE_MS_MAX = 1000;

/** Appends to a file in `directory`, with an fdatasync each time, for at most a second. */
export function probeDisk(directory: string): LatencyHistogram {
  const latencies = new LatencyHistogram();
  const path = join(directory, "disk-probe");
  const file = openSync(path, "a");
  try {
    const data = Buffer.alloc(APPEND_BYTES, "x");
    const endMs = performance.now() + PROBE_MS_MAX;
    while (latencies.count < APPENDS_MAX && performance.now() < endMs) {
      const startMs = performance.now();
      writeSync(file, data);
      fdatasyncSync(file);
      latencies.record(performance.now() - startMs);
    }
  } finally {
    closeSync(file);
    rmSync(path);
  }
  return latencies;
}
