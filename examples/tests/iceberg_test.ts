/** Runs `examples/iceberg.py` if PyIceberg is installed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { withDeployment } from "../../tests/support/deployment.ts";

const SCRIPT = fileURLToPath(new URL("../iceberg.py", import.meta.url));
const IMPORTS = "import pyiceberg.catalog.sql, pyarrow.parquet";
const skip = spawnSync("python3", ["-c", IMPORTS]).status === 0
  ? false
  : "PyIceberg is not installed: pip install 'pyiceberg[pyarrow,sql-sqlite]'";

test(
  "iceberg.py adds each sealed segment to a table exactly once",
  { skip },
  () =>
    withDeployment(async (deployment) => {
      // Without a configuration, the script makes a catalog in its working directory.
      const { folder: cwd } = deployment;
      const env = { ...process.env, HOME: cwd };
      for (const [batchId, events] of [["b1", 1], ["b2", 2]] as const) {
        await deployment.start();
        await deployment.append(batchId);
        await deployment.stop();
        await deployment.run(["seal"]);
        const args = [SCRIPT, deployment.logDir];
        const { stdout, stderr } = spawnSync("python3", args, { cwd, env, encoding: "utf8" });
        assert.equal(stdout, `1 segments added, ${events} events in log.events\n`, stderr);
      }
    }),
);
