/** A deployment with enough history to keep a seal or verify busy for a moment. */
import { join } from "node:path";
import { init } from "../../src/commands/init.ts";
import { openLog } from "../../src/log/log.ts";
import { preparedBatch } from "./prepared.ts";
import { realOptions } from "./test_log.ts";

export const COMMIT_EVENTS = 1000;

/** Creates a deployment in `dir` whose tail holds `commits` single-batch commits. */
export async function fillDeployment(dir: string, commits: number): Promise<void> {
  await init(dir);
  const log = await openLog(realOptions(join(dir, "data", "log")));
  const events = Array.from({ length: COMMIT_EVENTS }, (_, number) => ({
    recordKey: `${number}`,
    payload: { number, text: "x".repeat(200) },
  }));
  for (let number = 0; number < commits; number++) {
    await log.append([preparedBatch(`${number}`, { events })]);
  }
  await log.close();
}
