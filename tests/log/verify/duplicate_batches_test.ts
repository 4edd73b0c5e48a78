import assert from "node:assert/strict";
import { test } from "node:test";
import { batchHash, DuplicateBatches } from "../../../src/log/verify/duplicate_batches.ts";
import { closeInventory, takeInventory } from "../../../src/log/verify/inventory.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { flipBit } from "../../support/corrupt.ts";
import { pendingPaths } from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll } from "../../support/sealing.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestLog, tailOf, withTail } from "../../support/test_log.ts";

const PART_BATCHES = 500;

/** The name of a batch in a segment, the pending file or the tail. */
function nameOf(part: number, number: number): string {
  return `${part} ${number}`;
}

/**
 * Batches of one event in segments, a pending file and the tail. Those whose place in the tail is
 * given have the name that is given.
 */
async function largeLog(twice: ReadonlyMap<number, string> = new Map()): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  for (let part = 0; part < 3; part++) {
    const { log } = await openTestLog(storage);
    for (let start = 0; start < PART_BATCHES; start += 100) {
      const numbers = Array.from({ length: 100 }, (_, number) => start + number);
      await log.append(numbers.map((number) => {
        const name = part === 2 ? twice.get(number) : undefined;
        return preparedBatch(name ?? nameOf(part, number));
      }));
    }
    await log.close();
    if (part === 0) await sealAll(storage, { events: 200, bytes: Infinity });
    if (part === 1) await rotateOnly(storage);
  }
  return storage;
}

/** Room for all batches of the log at once, and for a part of them. */
const ROOMS = [3 * PART_BATCHES, 3 * PART_BATCHES - 1, 200];

test("verifyLog() finds a batch that is there twice among more than it can hold", async () => {
  const whole = await largeLog();
  for (const batchHashesMax of ROOMS) {
    const { report } = await verifyLog(whole, { chain: false, batchHashesMax });
    assert.deepEqual([report.ok, report.events_checked], [true, 3 * PART_BATCHES]);
  }
  for (const part of [0, 1, 2]) {
    const name = nameOf(part, 37 + part);
    const storage = await largeLog(new Map([[250, name]]));
    for (const batchHashesMax of ROOMS) {
      const { failure, others } = await verifyLog(storage, { chain: false, batchHashesMax });
      assert.equal(failure?.code, "idempotency_invalid");
      assert.equal(
        failure.message,
        `tail.ndjson: batch "${name}" of source "shop" is there once more`,
      );
      assert.deepEqual(others, []);
      assert.equal(storage.openFiles, 0);
    }
  }
});

test("verifyLog() reports the first in log order of many batches that are there twice", async () => {
  const twice = Array.from(
    { length: 50 },
    (_, i): [number, string] => [100 + 3 * i, nameOf(i % 2, 400 - i)],
  );
  const storage = await largeLog(new Map(twice));
  for (const batchHashesMax of ROOMS) {
    const { failure } = await verifyLog(storage, { chain: false, batchHashesMax });
    assert.match(failure!.message, /batch "0 400" of source "shop"/);
  }
});

test("verifyLog() finds a batch that is there twice before other damage, and names both", async () => {
  const tree = (await largeLog(new Map([[50, nameOf(0, 7)]]))).tree();
  const damaged = withTail(tree, flipBit(tailOf(tree), 8 * (tailOf(tree).length / 2)));
  const { failure, others } = await verifyLog(new SimulatedDisk(damaged), { chain: false });
  assert.equal(failure?.code, "idempotency_invalid");
  assert.deepEqual(others.map(({ code }) => code), ["tail_invalid"]);
  // The damage comes first where the file of the first of the two is damaged.
  const [pending] = pendingPaths(tree);
  damaged.set(pending!, flipBit(tree.get(pending!)!, 8000));
  const second = await verifyLog(new SimulatedDisk(damaged), { chain: false });
  assert.equal(second.failure?.code, "pending_invalid");
});

test("DuplicateBatches reports no batch that it does not read twice", async () => {
  const storage = await largeLog();
  const inventory = await takeInventory(storage);
  try {
    const duplicates = new DuplicateBatches(storage, inventory);
    const hash = batchHash({ source: "shop", batch_id: nameOf(1, 10) });
    for (let number = 0; number < 3 * PART_BATCHES; number++) duplicates.add(hash);
    assert.equal(await duplicates.find(), null);
  } finally {
    await closeInventory(inventory);
  }
});
