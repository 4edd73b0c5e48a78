/**
 * A service with an empty log: either in the test process, with an in-memory log, or as the
 * executable under test.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startServe, withInitialized } from "../../../tools/support/program.ts";
import { TESTED_EXECUTABLE } from "../../../tools/support/runtimes.ts";
import { withServedLog } from "./served_log.ts";

export interface Served {
  socketPath: string;
}

export interface ServedOptions {
  /** Default: no authentication. */
  token?: string;
}

/** Runs `use` against a service, then stops it. */
export async function withService(
  use: (served: Served) => Promise<void>,
  { token = "" }: ServedOptions = {},
): Promise<void> {
  if (TESTED_EXECUTABLE === undefined) {
    return await withServedLog(({ socketPath }) => use({ socketPath }), { handler: { token } });
  }
  await withInitialized(async (dir) => {
    await writeFile(join(dir, "service.toml"), `[server]\ntoken = "${token}"\n`);
    const serving = await startServe(dir);
    let isPassed = false;
    try {
      await use({ socketPath: join(dir, "data", "ground.sock") });
      isPassed = true;
    } finally {
      const { code, stderr } = await serving.stop();
      // If the test failed, its error is more useful than the exit status of the service.
      if (isPassed) assert.deepEqual([code, stderr.includes("defect")], [0, false], stderr);
    }
  });
}
