import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { BufferPool, POOLED_BYTES_MAX } from "../../src/event/buffer_pool.ts";
import { POOLED_BYTES_MIN } from "../../src/limits.ts";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";

const KIB = 1024;
const sized = (kib: number) => new ArrayBuffer(kib * KIB);

const seed = testSeed();
test(`BufferPool gives memory to one owner at a time, within its limit (SEED=${seed})`, () => {
  const random = seededRandom(seed);
  const pool = new BufferPool(4096 * KIB);
  const taken = new Set<ArrayBuffer>();
  let reused = 0;
  for (let step = 0; step < 5000; step++) {
    if (taken.size > 0 && random() < 0.5) {
      const [memory] = taken;
      taken.delete(memory!);
      pool.give(memory!);
    } else {
      const sizeBytes = randomInteger(random, 0, 3000 * KIB);
      const held = random() < 0.5 ? pool.takeHeld(sizeBytes) : null;
      const memory = held ?? pool.take(sizeBytes);
      if (held !== null) reused += 1;
      assert.ok(!taken.has(memory), "it has no owner");
      assert.ok(memory.byteLength >= sizeBytes);
      taken.add(memory);
    }
    assert.ok(pool.heldBytes <= 4096 * KIB);
  }
  assert.ok(reused > 0);
});

test("BufferPool.take() gives the smallest that fits, and none that is far too large", () => {
  const pool = new BufferPool();
  for (const kib of [4000, 200, 300]) pool.give(sized(kib));
  assert.equal(pool.takeHeld(5000 * KIB), null);
  assert.equal(pool.takeHeld(250 * KIB)?.byteLength, 300 * KIB);
  assert.equal(pool.takeHeld(250 * KIB), null);
  assert.equal(pool.take(1000 * KIB).byteLength, 4000 * KIB);
  assert.equal(pool.take(200 * KIB).byteLength, 200 * KIB);
  assert.equal(pool.heldBytes, 0);
});

test("BufferPool.take() gives new memory that fits a little more too", () => {
  const pool = new BufferPool();
  const memory = pool.take(4_200_000);
  const { byteLength } = memory;
  assert.ok(byteLength < 4_200_000 * 1.13);
  pool.give(memory);
  assert.equal(pool.takeHeld(4_210_000)?.byteLength, byteLength);
});

test("BufferPool.give() drops what was given first, and does not take what is not to be kept", () => {
  const pool = new BufferPool(1000 * KIB);
  for (const kib of [400, 401, 402]) pool.give(sized(kib));
  assert.deepEqual(pool.drain().map(({ byteLength }) => byteLength / KIB), [401, 402]);
  const detached = sized(300);
  structuredClone(detached, { transfer: [detached] });
  for (const memory of [detached, sized(501), new ArrayBuffer(POOLED_BYTES_MIN - 1)]) {
    pool.give(memory);
  }
  assert.deepEqual([pool.heldBytes, pool.drain()], [0, []]);
  assert.ok(POOLED_BYTES_MIN < POOLED_BYTES_MAX / 2);
});

test("BufferPool.giveBytes() takes no memory that others may be in", () => {
  const pool = new BufferPool();
  const shared = sized(300);
  pool.giveBytes(Buffer.from(shared, 0, 200 * KIB));
  assert.equal(pool.heldBytes, 0);
  pool.giveBytes(Buffer.from(shared));
  assert.equal(pool.heldBytes, 300 * KIB);
  const taken = Buffer.from(pool.take(250 * KIB), 0, 250 * KIB);
  assert.ok(pool.isAlone(taken));
  pool.giveBytes(taken);
  assert.equal(pool.takeHeld(250 * KIB)?.byteLength, 300 * KIB);
  const moved = Buffer.from(sized(400), 0, 1);
  pool.adopt(moved);
  pool.giveBytes(moved);
  assert.equal(pool.heldBytes, 400 * KIB);
});

test("BufferPool.give() leaves nothing to see, or to give, for those who still hold the memory", () => {
  const pool = new BufferPool();
  const memory = sized(512);
  const bytes = new Uint8Array(memory).fill(7);
  pool.give(memory);
  assert.deepEqual([bytes.length, memory.byteLength], [0, 0]);
  pool.give(memory);
  assert.equal(pool.heldBytes, 512 * KIB);
  assert.deepEqual(new Uint8Array(pool.take(512 * KIB), 0, 2), Uint8Array.of(7, 7));
});
