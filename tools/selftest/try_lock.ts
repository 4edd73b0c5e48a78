/** Tries to lock the file named by its argument, prints `free` or `held`, and releases the lock. */
import process from "node:process";
import { lockFile } from "../../src/runtime/file_lock.ts";

const release = await lockFile(process.argv[2]!);
release?.();
process.stdout.write(release === null ? "held" : "free");
