/** Ends with the status that it is given while something is under way: for tests. */
import process from "node:process";
import { setInterval } from "node:timers";
import { endProcess } from "../../src/runtime/end_process.ts";

setInterval(() => {}, 60_000);
endProcess(Number(process.argv[2]));
