/**
 * `serve` under a limit on the size of files whose signal nobody ignores: Node ignores it itself
 * and answers `storage_full`; under Deno the system ends the process in the middle of a commit, as
 * a kill does. Either way a start without the limit has all that was acknowledged. Needs `prlimit`.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import type { Receipt } from "../../src/event/types.ts";
import { allEvents, assertError, batchWith, event, ingest } from "../contract/support/api.ts";
import { withDeployment } from "../support/deployment.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { skipLoudly } from "./support/skip.ts";

const LIMIT_BYTES = 300_000;
const PAYLOAD_CHARS = 10_000;
/** More than the limit has room for. */
const BATCHES_MAX = LIMIT_BYTES / PAYLOAD_CHARS + 1;

/** Without a core file. */
const WRAPPER = ["prlimit", "--core=0", `--fsize=${LIMIT_BYTES}:unlimited`];

/** Ingests until one batch is not taken. @returns what was acknowledged. */
async function fill(socketPath: string): Promise<Receipt[]> {
  const receipts: Receipt[] = [];
  const events = [event({ payload: "x".repeat(PAYLOAD_CHARS) })];
  for (let number = 0; number < BATCHES_MAX; number++) {
    const batch = batchWith({ batch_id: `${number}`, events });
    const reply = await ingest(socketPath, batch).catch(() => null);
    if (reply === null) return receipts;
    if (reply.status !== 200) {
      assertError(reply, "storage_full");
      return receipts;
    }
    receipts.push(reply.json());
  }
  return assert.fail("there was room for everything");
}

test("serve loses nothing to a limit on the size of files", async (context) => {
  const { error } = spawnSync("prlimit", ["--version"]);
  if (error !== undefined) return skipLoudly(context, `no prlimit: ${error.message}`);
  await withDeployment(async (deployment) => {
    const { socketPath } = deployment;
    // Deno keeps what it has compiled in large files of its own.
    const denoFlags = ["--no-code-cache"];
    const serving = await deployment.start({ wrapper: WRAPPER, denoFlags });
    const receipts = await fill(socketPath);
    assert.ok(receipts.length > 0);
    const end = THIS_RUNTIME === "node" ? await serving.stop() : await serving.exited;
    assert.deepEqual(
      [end.code, end.signal],
      THIS_RUNTIME === "node" ? [0, null] : [null, "SIGXFSZ"],
      end.stderr,
    );
    await deployment.start();
    const ids = (await allEvents(socketPath)).map(({ event_id }) => event_id);
    assert.deepEqual(ids, receipts.map(({ first_event_id }) => first_event_id));
    const reply = await ingest(socketPath, batchWith({ batch_id: "room again" }));
    assert.equal(reply.status, 200, reply.text());
    await deployment.stop();
  });
});
