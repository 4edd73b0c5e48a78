/**
 * Locks the file named by its argument, prints `locked` or `held`, and keeps the lock until
 * standard input ends.
 */
import process from "node:process";
import { endProcess } from "../../src/runtime/end_process.ts";
import { lockFile } from "../../src/runtime/file_lock.ts";

const release = await lockFile(process.argv[2]!);
process.stdout.write(release === null ? "held" : "locked");
for await (const _ of process.stdin);
endProcess(0);
