/**
 * Ends the process immediately. On Node, `process.exit()` joins V8's threads and can deadlock: a
 * compiler thread may wait for a garbage collection by the exiting thread (Node 24.21:
 * `WorkerThreadsTaskRunner::Shutdown` and `CollectionBarrier::AwaitCollectionBackground`). Instead,
 * execve(2) replaces the process with a shell that exits without waiting for any thread.
 */
import { accessSync, constants } from "node:fs";
import process from "node:process";

const SHELL = "/bin/sh";

/** Ends the process and drops unfinished work. */
export function endProcess(exitStatus: number): never {
  if (!("Deno" in globalThis)) becomeExit(exitStatus);
  process.exit(exitStatus);
}

/** Returns only on failure: no shell, no permission to run one, or no execve(2). */
function becomeExit(exitStatus: number): void {
  try {
    accessSync(SHELL, constants.X_OK);
    process.execve!(SHELL, ["sh", "-c", `exit ${exitStatus}`], {});
  } catch {
    // Fall back to process.exit(), which can deadlock, but rarely does.
  }
}
