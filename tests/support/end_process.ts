/** Exits with the given status while work is in progress, for tests. */
import process from "node:process";
import { setInterval } from "node:timers";
import { endProcess } from "../../src/runtime/end_process.ts";

setInterval(() => {}, 60_000);
endProcess(Number(process.argv[2]));
