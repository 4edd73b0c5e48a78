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
  if ("Deno" in globalThis) process.exit(exitStatus);
  try {
    accessSync(SHELL, constants.X_OK);
    process.execve!(SHELL, ["sh", "-c", `exit ${exitStatus}`], {});
  } catch {
    // Without a shell or execve(2), fall back to process.exit(), which rarely deadlocks.
  }
  process.exit(exitStatus);
}
