import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { RecentCommits } from "../../../src/log/wal/recent_commits.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { randomInteger, seededRandom, testSeed } from "../../../tools/support/random.ts";
import { openTestLog, readAll } from "../../support/test_log.ts";

/** Ids of equal length that sort by number. */
function idOf(number: number): string {
  return String(number).padStart(6, "0");
}

const seed = testSeed();
test(`RecentCommits returns the same bytes as the file, or reports a miss (SEED=${seed})`, () => {
  const random = seededRandom(seed);
  for (let run = 0; run < 20; run++) {
    const limitBytes = randomInteger(random, 0, 20_000);
    const recent = new RecentCommits(limitBytes, idOf(0));
    const file = Buffer.from(Array.from({ length: 30_000 }, () => randomInteger(random, 0, 255)));
    const offsets = [0];
    while (offsets.at(-1)! < 20_000) {
      const offset = offsets.at(-1)!;
      const bytes = file.subarray(offset, offset + randomInteger(random, 1, 900));
      recent.add(offset, Buffer.from(bytes), idOf(offsets.length));
      offsets.push(offset + bytes.length);
      const end = offsets.at(-1)!;
      const position = randomInteger(random, 0, end);
      const into = Buffer.alloc(randomInteger(random, 1, 3000));
      const isHeld = recent.read(into, position);
      if (isHeld) assert.deepEqual(into, file.subarray(position, position + into.length));
      assert.ok(!isHeld || position + into.length <= end);
      assert.ok(!isHeld || end - position <= limitBytes);
      const number = randomInteger(random, 0, offsets.length - 2);
      const found = recent.seek(idOf(number));
      assert.ok(found === null || found === offsets[number], "the commit after an id");
    }
  }
});

test("RecentCommits holds the newest commits up to its limit", () => {
  const recent = new RecentCommits(10_000, idOf(0));
  for (let number = 1; number <= 50; number++) {
    recent.add((number - 1) * 1000, Buffer.alloc(1000, number), idOf(number));
  }
  const into = Buffer.alloc(5000);
  assert.ok(recent.read(into, 45_000));
  assert.deepEqual([into[0], into[4999]], [46, 50]);
  assert.equal(recent.seek(idOf(45)), 45_000);
  assert.equal(recent.seek(idOf(50)), null);
  assert.ok(!recent.read(Buffer.alloc(1000), 39_000));
  assert.equal(recent.seek(idOf(30)), null);
  recent.add(50_000, Buffer.alloc(20_000), idOf(51));
  assert.ok(!recent.read(Buffer.alloc(1), 50_000), "a commit that is too large is not cached");
  recent.add(70_000, Buffer.alloc(1000, 52), idOf(52));
  assert.ok(recent.read(Buffer.alloc(1000), 70_000));
  assert.equal(recent.seek(idOf(51)), 70_000);
  assert.equal(recent.seek(idOf(50)), null);
});

test("recent events are read from memory, and older ones are read from the file", async () => {
  const storage = new SimulatedDisk();
  const readsOf = () => storage.operations.filter(({ kind }) => kind === "read").length;
  const { log: before } = await openTestLog(storage);
  await before.append([preparedBatch("a")]);
  await before.close();
  const { log } = await openTestLog(storage);
  const [b] = await log.append([preparedBatch("b")]);
  await log.append([preparedBatch("c")]);
  const readsBefore = readsOf();
  const newest = await readAll(log.snapshot, b!.first_event_id);
  assert.deepEqual(newest.map((event) => event.batch_id), ["c"]);
  assert.equal(readsOf(), readsBefore);
  const all = await readAll(log.snapshot);
  assert.deepEqual(all.map((event) => event.batch_id), ["a", "b", "c"]);
  assert.ok(readsOf() > readsBefore);
});
