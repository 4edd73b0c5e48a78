import assert from "node:assert/strict";
import { test } from "node:test";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { IdentitySet } from "../../../src/log/verify/verify_identities.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll } from "../../support/sealing.ts";
import { openTestLog } from "../../support/test_log.ts";

test("IdentitySet.add() tells a known identity from a new one", () => {
  const identities = new IdentitySet();
  for (let number = 0; number < 5_000; number++) {
    assert.ok(identities.add("shop", `${number}`));
    assert.ok(identities.add(`shop-${number}`, "1"));
  }
  for (let number = 0; number < 5_000; number++) {
    assert.ok(!identities.add("shop", `${number}`));
    assert.ok(!identities.add(`shop-${number}`, "1"));
  }
  assert.ok(identities.add("sho", "p\n1"));
  assert.equal(identities.left, null);
});

test("IdentitySet takes what it has no room for in further passes", () => {
  const slotsMax = 1024;
  const count = 8_000;
  const known = new Array(count).fill(0);
  let passes = 0;
  let from: number | null = 0;
  while (from !== null) {
    const identities: IdentitySet = new IdentitySet(from, slotsMax);
    for (let number = 0; number < count; number++) {
      assert.ok(identities.add("shop", `${number}`), "all are different");
    }
    for (let number = 0; number < count; number++) {
      if (!identities.add("shop", `${number}`)) known[number] += 1;
    }
    from = identities.left;
    passes += 1;
  }
  assert.ok(known.every((times) => times === 1), "each is held in one pass");
  assert.ok(passes > 8 && passes < 30, `${passes} passes`);
});

/** Batches of one event in segments, a pending file and the tail; one of them twice if wanted. */
async function largeLog(twice: string | null): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  for (let part = 0; part < 3; part++) {
    const { log } = await openTestLog(storage);
    for (let commit = 0; commit < 10; commit++) {
      const names = Array.from({ length: 100 }, (_, number) => `${part} ${commit} ${number}`);
      if (part === 2 && commit === 5 && twice !== null) names[50] = twice;
      await log.append(names.map((name) => preparedBatch(name)));
    }
    await log.close();
    if (part === 0) await sealAll(storage, { events: 400, bytes: Infinity });
    if (part === 1) await rotateOnly(storage);
  }
  return storage;
}

test("verifyLog() finds a batch that is there twice among more than it can hold", async () => {
  const options = { chain: false, identitySlotsMax: 1024 };
  const { report } = await verifyLog(await largeLog(null), options);
  assert.deepEqual([report.ok, report.events_checked], [true, 3000]);
  for (let number = 0; number < 4; number++) {
    const name = `${number % 3} 3 ${number}`;
    const storage = await largeLog(name);
    const { failure } = await verifyLog(storage, options);
    assert.equal(failure?.code, "idempotency_invalid");
    assert.equal(
      failure.message,
      `tail.ndjson: batch "${name}" of source "shop" is there once more`,
    );
    assert.equal(storage.openFiles, 0);
  }
});
