/**
 * Traces system calls in a running process with `strace` (Linux) and makes them fail. It attaches
 * to the process, so faults can begin and end while it runs.
 */
import { spawn, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { skipLoudly } from "./skip.ts";

/** Maximum string size that strace prints. The largest commit header in the tests fits. */
const STRING_BYTES_MAX = 65_536;

/** The reason why no process can be traced on this machine, or null. */
function straceAbsence(): string | null {
  const target = spawn("sleep", ["60"], { stdio: "ignore" });
  try {
    const args = ["-f", "-e", "trace=none", "-p", String(target.pid)];
    const tracer = spawnSync("timeout", ["-s", "TERM", "1", "strace", ...args], {
      encoding: "utf8",
    });
    if (tracer.error !== undefined) return `cannot run strace: ${tracer.error.message}`;
    const said = tracer.stderr.trim();
    return said.includes("attached") ? null : `strace cannot attach to a process: ${said}`;
  } finally {
    process.kill(target.pid!, "SIGKILL");
  }
}

const absence = straceAbsence();

/** A test that is skipped where no process can be traced. */
export function testTraced(title: string, run: () => Promise<void>): void {
  test(title, async (context) => {
    if (absence !== null) return skipLoudly(context, absence);
    await run();
  });
}

export interface Tracer {
  /** Detaches while the process keeps running. @returns the lines in the trace, in order. */
  stop(): Promise<string[]>;
}

/**
 * Attaches to all threads of a process, and resolves once they are traced.
 * @param folder receives the trace.
 * @param args `strace` options that select the calls to trace and the faults to inject.
 */
export async function attachStrace(pid: number, folder: string, args: string[]): Promise<Tracer> {
  const tracePath = join(folder, "system_calls.trace");
  const own = ["-f", "-y", "-s", String(STRING_BYTES_MAX), "-o", tracePath, "-p", String(pid)];
  const tracer = spawn("strace", [...own, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = new Promise((resolve) => tracer.on("close", resolve));
  let said = "";
  await new Promise<void>((resolve, reject) => {
    tracer.on("error", reject);
    tracer.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("attached")) resolve();
    });
    exited.then(() => reject(new Error(`strace exited: ${said}`)));
  });
  return {
    async stop() {
      process.kill(tracer.pid!, "SIGTERM");
      await exited;
      return (await readFile(tracePath, "utf8")).split("\n");
    },
  };
}
