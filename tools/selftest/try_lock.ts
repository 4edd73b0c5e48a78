/** Tries the lock on the file named by its argument, prints `free` or `held`, and gives it up. */
import process from "node:process";
import { lockFile } from "../../src/runtime/file_lock.ts";

const lock = await lockFile(process.argv[2]!);
lock?.release();
process.stdout.write(lock === null ? "held" : "free");
