import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  DECODE_MEMORIES_MAX,
  DECODE_MEMORY_BYTES_MAX,
  DecodeMemory,
  withDecodeMemory,
} from "../../../src/log/parquet/decode_memory.ts";

test("DecodeMemory gives memory that does not overlap until it is cleared", () => {
  const memory = new DecodeMemory();
  for (let round = 0; round < 3; round++) {
    const taken = [1, 7, 16, 1000].map((sizeBytes) => memory.take(sizeBytes));
    const words = memory.takeWords(5);
    taken.forEach((bytes, place) => bytes.fill(place));
    words.fill(0xffff_ffff);
    assert.deepEqual(taken.map(({ length }) => length), [1, 7, 16, 1000]);
    taken.forEach((bytes, place) => assert.ok(bytes.every((byte) => byte === place)));
    assert.deepEqual([...words], Array(5).fill(0xffff_ffff));
    memory.clear();
  }
});

test("DecodeMemory is used again, unless more is taken than is kept", () => {
  const memory = new DecodeMemory();
  for (const sizeBytes of [100, 60, DECODE_MEMORY_BYTES_MAX + 1, 100]) {
    memory.take(sizeBytes);
    memory.clear();
  }
  const before = memory.take(10);
  memory.clear();
  assert.equal(memory.take(20).buffer, before.buffer);
  const large = memory.take(DECODE_MEMORY_BYTES_MAX + 1);
  assert.notEqual(large.buffer, before.buffer);
  assert.equal(large.length, DECODE_MEMORY_BYTES_MAX + 1);
});

test("withDecodeMemory() gives nobody what another one uses", async () => {
  const held = Promise.withResolvers<void>();
  const used: DecodeMemory[] = [];
  const use = async (memory: DecodeMemory) => {
    used.push(memory);
    await held.promise;
  };
  const users = Array.from({ length: DECODE_MEMORIES_MAX }, () => withDecodeMemory(use));
  held.resolve();
  await Promise.all(users);
  assert.equal(new Set(used).size, DECODE_MEMORIES_MAX);
  await withDecodeMemory((memory) => {
    assert.ok(used.includes(memory));
    return Promise.resolve();
  });
});

test("withDecodeMemory() has the next one wait until one of many is done, also when it failed", async () => {
  const held = Array.from({ length: DECODE_MEMORIES_MAX }, () => Promise.withResolvers<void>());
  const users = held.map(({ promise }) => withDecodeMemory(() => promise));
  const order: string[] = [];
  const next = withDecodeMemory(() => Promise.resolve(order.push("next")));
  // Whoever had not to wait would have begun by now.
  await setImmediate();
  order.push("done");
  held[0]!.reject(new Error("no"));
  await assert.rejects(users[0]!, /no/);
  await next;
  assert.deepEqual(order, ["done", "next"]);
  for (const { resolve } of held) resolve();
  await Promise.all(users.slice(1));
});
