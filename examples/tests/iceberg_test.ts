/** Runs `examples/iceberg.py` if PyIceberg is installed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
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
      const env = {
        ...process.env,
        PYICEBERG_CATALOG__DEFAULT__TYPE: "sql",
        PYICEBERG_CATALOG__DEFAULT__URI: `sqlite:///${join(deployment.folder, "catalog.db")}`,
        PYICEBERG_CATALOG__DEFAULT__WAREHOUSE: `file://${deployment.folder}/warehouse`,
      };
      for (const [batchId, events] of [["b1", 1], ["b2", 2]] as const) {
        await deployment.start();
        await deployment.append(batchId);
        await deployment.stop();
        await deployment.run(["seal"]);
        const args = [SCRIPT, deployment.logDir];
        const { stdout, stderr } = spawnSync("python3", args, { env, encoding: "utf8" });
        assert.equal(stdout, `1 segments added, ${events} events in log.events\n`, stderr);
      }
    }),
);
