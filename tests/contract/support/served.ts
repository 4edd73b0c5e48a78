/**
 * A service with an empty log, as a client sees it: in the test's own process over a log in memory,
 * or the executable that is to be tested.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { init } from "../../../src/commands/init.ts";
import { startServe, withFolder } from "../../../tools/support/program.ts";
import { TESTED_EXECUTABLE } from "../../../tools/support/runtimes.ts";
import { withServedLog } from "./served_log.ts";

export interface Served {
  socketPath: string;
}

export interface ServedOptions {
  /** Default: none is asked for. */
  token?: string;
}

/** Runs `use` against a service, then ends it. */
export async function withService(
  use: (served: Served) => Promise<void>,
  { token = "" }: ServedOptions = {},
): Promise<void> {
  if (TESTED_EXECUTABLE === undefined) {
    return await withServedLog(({ socketPath }) => use({ socketPath }), { handler: { token } });
  }
  await withFolder(async (dir) => {
    await init(dir, () => {});
    await writeFile(join(dir, "service.toml"), `[server]\ntoken = "${token}"\n`);
    const serving = await startServe(dir);
    let isPassed = false;
    try {
      await use({ socketPath: join(dir, "data", "ground.sock") });
      isPassed = true;
    } finally {
      const { code, stderr } = await serving.stop();
      // What the test found wrong tells more than how the service ended.
      if (isPassed) assert.deepEqual([code, stderr.includes("defect")], [0, false], stderr);
    }
  });
}
