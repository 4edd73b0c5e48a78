/** What the tools that run for long have in common. */
import process from "node:process";
import { endProcess } from "../../src/runtime/end_process.ts";

const EXIT_USAGE = 2;

/** Prints a line to standard error. */
export function report(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Returns a signal that the first SIGINT or SIGTERM aborts. */
export function stopSignal(): AbortSignal {
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => stopped.abort(new Error(`stopped by ${signal}`)));
  }
  return stopped.signal;
}

/**
 * Runs a tool, and ends the process with the status that it returns.
 * @param prepare reads the arguments. If one is invalid, or something that the tool needs is
 *   missing, it throws, and the exit status is 2.
 */
export async function runTool<T>(
  prepare: (args: string[]) => T | Promise<T>,
  run: (prepared: T) => Promise<number>,
): Promise<void> {
  let prepared: T;
  try {
    prepared = await prepare(process.argv.slice(2));
  } catch (error) {
    report((error as Error).message);
    return endProcess(EXIT_USAGE);
  }
  // End explicitly, because idle keep-alive connections would keep the process alive.
  endProcess(await run(prepared));
}
