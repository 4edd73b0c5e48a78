/**
 * The end of a program, at once. On Node not by `process.exit()`, which waits for threads of V8:
 * one of them may wait for memory that only the waiting thread could free, and then neither ever
 * ends (Node 24.21: `WorkerThreadsTaskRunner::Shutdown` joins a compiler thread that is in
 * `CollectionBarrier::AwaitCollectionBackground`). A process that becomes another program, one that
 * only exits, waits for no thread (execve(2)).
 */
import { accessSync, constants } from "node:fs";
import process from "node:process";

const SHELL = "/bin/sh";

/** Ends the process; what it has under way is dropped. */
export function endProcess(exitStatus: number): never {
  if (!("Deno" in globalThis)) becomeExit(exitStatus);
  process.exit(exitStatus);
}

/** Returns where that cannot be: no such shell, no permission to run one, no execve(2). */
function becomeExit(exitStatus: number): void {
  try {
    accessSync(SHELL, constants.X_OK);
    process.execve!(SHELL, ["sh", "-c", `exit ${exitStatus}`], {});
  } catch {
    // The usual way is left, and nearly always ends too.
  }
}
