/**
 * Ends the process at once. `process.exit()` on Node joins the threads of V8 and can deadlock: a
 * compiler thread may wait for a garbage collection of the exiting thread (Node 24.21:
 * `WorkerThreadsTaskRunner::Shutdown` and `CollectionBarrier::AwaitCollectionBackground`).
 * execve(2) of a shell that exits waits for no thread.
 */
import { accessSync, constants } from "node:fs";
import process from "node:process";

const SHELL = "/bin/sh";

/** Ends the process and drops unfinished work. */
export function endProcess(exitStatus: number): never {
  if (!("Deno" in globalThis)) becomeExit(exitStatus);
  process.exit(exitStatus);
}

/** Returns if it fails: no shell, no permission to run one, no execve(2). */
function becomeExit(exitStatus: number): void {
  try {
    accessSync(SHELL, constants.X_OK);
    process.execve!(SHELL, ["sh", "-c", `exit ${exitStatus}`], {});
  } catch {
    // Fall back to process.exit(), which rarely deadlocks.
  }
}
