/**
 * One deployment, served by each runtime in turn. Each runtime takes over the files, locks and torn
 * commits that the other left.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { appendFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { CommittedEvent, Receipt } from "../../src/event/types.ts";
import { allEvents, event } from "../contract/support/api.ts";
import { type Deployment, withDeployment, withServing } from "../support/deployment.ts";
import {
  absenceOf,
  executableOf,
  type RuntimeName,
  THIS_RUNTIME,
} from "../../tools/support/runtimes.ts";

const OTHER_RUNTIME: RuntimeName = THIS_RUNTIME === "deno" ? "node" : "deno";

/** A test that needs both runtimes. */
function testWithBoth(name: string, run: () => Promise<void>): void {
  test(name, async (context: TestContext) => {
    if (executableOf(OTHER_RUNTIME) === null) return context.skip(absenceOf(OTHER_RUNTIME));
    await run();
  });
}

/** Ingests a batch, either new or a duplicate. */
async function append(deployment: Deployment, batchId: string): Promise<Receipt> {
  const events = [event({ payload: { text: "Zoë \u{1f600}", amount: 12.5 } })];
  const reply = await deployment.ingest(batchId, { events });
  assert.equal(reply.status, 200, reply.text());
  return reply.json();
}

testWithBoth(
  "each runtime continues a log after the other's process is killed, and deduplicates batches",
  async () => {
    await withDeployment(async (deployment) => {
      const receipts: Receipt[] = [];
      let before: CommittedEvent[] | null = null;
      for (const runtime of [THIS_RUNTIME, OTHER_RUNTIME, THIS_RUNTIME, OTHER_RUNTIME]) {
        await deployment.start({ runtime });
        const { socketPath } = deployment;
        if (before !== null) assert.deepEqual(await allEvents(socketPath), before);
        for (const [number, receipt] of receipts.entries()) {
          const again = await append(deployment, `b${number}`);
          assert.deepEqual(again, { ...receipt, status: "duplicate" });
        }
        const receipt = await append(deployment, `b${receipts.length}`);
        assert.equal(receipt.status, "committed");
        receipts.push(receipt);
        before = await allEvents(socketPath);
        await deployment.stop("SIGKILL");
        // A kill during a write leaves this remnant.
        await appendFile(join(deployment.logDir, "tail.ndjson"), '{"commit":{"batches":[');
      }
    });
  },
);

testWithBoth(
  "a runtime starts on the other's cleanly closed log without changing a byte",
  async () => {
    await withDeployment(async (deployment) => {
      const tailPath = join(deployment.logDir, "tail.ndjson");
      let tail: Buffer = Buffer.alloc(0);
      for (const runtime of [THIS_RUNTIME, OTHER_RUNTIME, THIS_RUNTIME]) {
        await deployment.start({ runtime });
        assert.equal((await stat(tailPath)).size, tail.length, "startup writes nothing");
        await deployment.append(`${tail.length}`);
        await deployment.stop();
        const written = await readFile(tailPath);
        assert.ok(written.subarray(0, tail.length).equals(tail));
        tail = written;
      }
    });
  },
);

testWithBoth("a log served by one runtime is locked for the other", async () => {
  await withServing(async (deployment) => {
    const refused = await deployment.run(["serve"], { runtime: OTHER_RUNTIME });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /held by another process/);
    await deployment.append("still served");
    await deployment.stop();
  });
});
