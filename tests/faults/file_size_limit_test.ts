/**
 * `serve` under a file size limit: a write that crosses it is cut short, and the next one fails
 * with EFBIG. If SIGXFSZ is ignored, by the parent or by Node, the service returns `storage_full`
 * until the limit is lifted; else Deno is killed in the middle of a commit. In both cases, a
 * restart returns everything acknowledged. Needs `prlimit`.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { assertError, event } from "../contract/support/api.ts";
import { type Deployment, withDeployment } from "../support/deployment.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { skipLoudly } from "./support/skip.ts";

const LIMIT_BYTES = 250_000;
const PAYLOAD_CHARS = 10_000;
/** Number of batches whose total size exceeds the limit. */
const BATCHES_MAX = LIMIT_BYTES / PAYLOAD_CHARS + 1;

/** Sets the file size limit and disables core dumps. */
const LIMIT = ["prlimit", "--core=0", `--fsize=${LIMIT_BYTES}:unlimited`];

/** Ingests batches until one is rejected or the service dies. */
async function fill(deployment: Deployment): Promise<void> {
  const events = [event({ payload: "x".repeat(PAYLOAD_CHARS) })];
  for (let number = 0; number < BATCHES_MAX; number++) {
    const reply = await deployment.ingest(`${number}`, { events }).catch(() => null);
    if (reply?.status === 200) continue;
    if (reply !== null) assertError(reply, "storage_full");
    return;
  }
  assert.fail("the limit was never reached");
}

const PARENTS: [title: string, wrapper: string[]][] = [
  ["not ignored", LIMIT],
  ["ignored", ["sh", "-c", `trap '' XFSZ; exec "$@"`, "sh", ...LIMIT]],
];

for (const [title, wrapper] of PARENTS) {
  test(`serve loses nothing at a file size limit, with SIGXFSZ ${title}`, async (context) => {
    const { error } = spawnSync("prlimit", ["--version"]);
    if (error !== undefined) return skipLoudly(context, `cannot run prlimit: ${error.message}`);
    await withDeployment(async (deployment) => {
      // Deno caches compiled code in large files.
      const denoFlags = ["--no-code-cache"];
      const serving = await deployment.start({ wrapper, denoFlags });
      await fill(deployment);
      assert.ok(deployment.receipts.length > 0);
      if (title === "ignored" || THIS_RUNTIME === "node") {
        await deployment.assertShows();
        spawnSync("prlimit", [`--pid=${serving.child.pid}`, "--fsize=unlimited:unlimited"]);
        await deployment.append("without the limit");
        await deployment.stop();
      } else {
        const { code, signal, stderr } = await serving.exited;
        assert.deepEqual([code, signal], [null, "SIGXFSZ"], stderr);
      }
      await deployment.assertContinues();
    });
  });
}
