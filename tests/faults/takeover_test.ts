/**
 * One deployment, served by one runtime after the other: what the one wrote, locked or left torn,
 * the other takes over.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { appendFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Receipt } from "../../src/event/types.ts";
import type { Serving } from "../../tools/support/program.ts";
import { withDeployment, withServing } from "../support/deployment.ts";
import {
  absenceOf,
  executableOf,
  type RuntimeName,
  THIS_RUNTIME,
} from "../../tools/support/runtimes.ts";

const OTHER_RUNTIME: RuntimeName = THIS_RUNTIME === "deno" ? "node" : "deno";

/** Runs a test that needs both runtimes. */
function testWithBoth(name: string, run: () => Promise<void>): void {
  test(name, async (context: TestContext) => {
    if (executableOf(OTHER_RUNTIME) === null) return context.skip(absenceOf(OTHER_RUNTIME));
    await run();
  });
}

async function append(serving: Serving, batchId: string): Promise<Receipt> {
  const events = ["a", "b"].map((recordKey) => ({
    stream: "orders",
    record_key: `${batchId} ${recordKey}`,
    kind: "upserted",
    payload: { text: "Zoë \u{1f600}", amount: 12.5 },
  }));
  const response = await serving.fetch("http://service/v1/events", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ source: "shop", batch_id: batchId, events }),
  });
  assert.equal(response.status, 200);
  return await response.json();
}

async function readEvents(serving: Serving): Promise<string> {
  return await (await serving.fetch("http://service/v1/events")).text();
}

testWithBoth(
  "each runtime serves, repeats and continues what the other wrote and was killed over",
  async () => {
    await withDeployment(async (deployment) => {
      const receipts: Receipt[] = [];
      let before: string | null = null;
      for (const runtime of [THIS_RUNTIME, OTHER_RUNTIME, THIS_RUNTIME, OTHER_RUNTIME]) {
        const serving = await deployment.start({ runtime });
        if (before !== null) assert.equal(await readEvents(serving), before);
        for (const [number, receipt] of receipts.entries()) {
          assert.deepEqual(await append(serving, `b${number}`), {
            ...receipt,
            status: "duplicate",
          });
        }
        const receipt = await append(serving, `b${receipts.length}`);
        assert.equal(receipt.status, "committed");
        receipts.push(receipt);
        before = await readEvents(serving);
        await deployment.stop("SIGKILL");
        // What a kill in the middle of a write leaves.
        await appendFile(join(deployment.logDir, "tail.ndjson"), '{"commit":{"batches":[');
      }
    });
  },
);

testWithBoth(
  "a clean end of one runtime is a clean start of the other, byte for byte",
  async () => {
    await withDeployment(async (deployment) => {
      const tailPath = join(deployment.logDir, "tail.ndjson");
      let tail: Buffer = Buffer.alloc(0);
      for (const runtime of [THIS_RUNTIME, OTHER_RUNTIME, THIS_RUNTIME]) {
        const serving = await deployment.start({ runtime });
        assert.equal((await stat(tailPath)).size, tail.length, "a clean start writes nothing");
        await append(serving, `${tail.length}`);
        await deployment.stop();
        const written = await readFile(tailPath);
        assert.ok(written.subarray(0, tail.length).equals(tail));
        tail = written;
      }
    });
  },
);

testWithBoth("a log that one runtime serves is refused to the other", async () => {
  await withServing(async (deployment) => {
    const refused = await deployment.run(["serve"], { runtime: OTHER_RUNTIME });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /held by another process/);
    assert.equal((await append(deployment.serving, "still served")).status, "committed");
    await deployment.stop();
  });
});
