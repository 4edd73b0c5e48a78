import assert from "node:assert/strict";
import { test } from "node:test";
import { PART_MEMORY_BYTES, PartCache } from "../../../src/log/segment/part_cache.ts";
import { LineMemory } from "../../../src/log/segment/segment_lines.ts";

/** Keeps one part for each name, with room for two. */
function cacheOf(...names: string[]): PartCache {
  const cache = new PartCache(2.5 * PART_MEMORY_BYTES);
  for (const name of names) keepPart(cache, name);
  return cache;
}

function keepPart(cache: PartCache, name: string): void {
  const memory = cache.takeMemory();
  memory.end = memory.bytes.write(name);
  cache.keep(name, memory);
}

test("PartCache.get() gives what was kept, and null for what was not", () => {
  const cache = cacheOf("first", "second");
  assert.equal(cache.get("first")?.toString(), "first");
  assert.equal(cache.get("second")?.toString(), "second");
  assert.equal(cache.get("third"), null);
});

test("PartCache.takeMemory() drops the part that was not used for longest, for its memory", () => {
  const cache = cacheOf("first", "second");
  const first = cache.get("first")!;
  cache.get("second");
  const memory = cache.takeMemory();
  assert.equal(memory.bytes.buffer, first.buffer);
  assert.equal(memory.end, 0);
  assert.equal(cache.get("first"), null);
  assert.equal(cache.get("second")?.toString(), "second");
});

test("PartCache.keep() keeps no part that is larger than all its room, and no other for it", () => {
  const cache = cacheOf("first");
  const memory = new LineMemory(3 * PART_MEMORY_BYTES);
  cache.keep("large", memory);
  assert.equal(cache.get("large"), null);
  assert.equal(cache.get("first"), null);
});

test("PartCache.takeMemory() gives memory of the ordinary size after a larger part", () => {
  const cache = new PartCache(2.5 * PART_MEMORY_BYTES);
  cache.keep("large", new LineMemory(2 * PART_MEMORY_BYTES));
  assert.equal(cache.takeMemory().bytes.length, PART_MEMORY_BYTES);
  assert.equal(cache.get("large"), null);
});
