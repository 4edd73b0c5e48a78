import assert from "node:assert/strict";
import { test } from "node:test";
import { BloomCache, type FilterSource } from "../../../src/log/segment/bloom_cache.ts";

/** A source that counts how often it is read. */
function countedSource(key: string, sizeBytes: number): FilterSource & { loads: number } {
  const source = {
    key,
    sizeBytes,
    loads: 0,
    load() {
      source.loads += 1;
      return Promise.resolve([new Uint32Array(sizeBytes / 4)]);
    },
  };
  return source;
}

test("BloomCache.get() reads a source once, also when it is asked for again meanwhile", async () => {
  const cache = new BloomCache(100);
  const source = countedSource("a", 40);
  const [first, second] = await Promise.all([cache.get(source), cache.get(source)]);
  assert.equal(first, second);
  assert.equal(await cache.get(source), first);
  assert.equal(source.loads, 1);
});

test("BloomCache.get() drops the least recently used sources beyond its limit", async () => {
  const cache = new BloomCache(100);
  const [a, b, c] = [countedSource("a", 40), countedSource("b", 40), countedSource("c", 40)];
  for (const source of [a, b, a, c]) await cache.get(source);
  assert.equal(cache.sizeBytes, 80);
  for (const source of [a, c, b]) await cache.get(source);
  assert.deepEqual([a.loads, b.loads, c.loads], [1, 2, 1]);
});

test("BloomCache.get() gives a source that is larger than the cache and does not keep it", async () => {
  const cache = new BloomCache(100);
  const [small, large] = [countedSource("small", 40), countedSource("large", 400)];
  await cache.get(small);
  assert.equal((await cache.get(large))[0]!.byteLength, 400);
  assert.equal(cache.sizeBytes, 0);
});

test("BloomCache.get() asks again for what could not be read", async () => {
  const cache = new BloomCache(100);
  let failing = true;
  const source: FilterSource = {
    key: "a",
    sizeBytes: 40,
    load: () => failing ? Promise.reject(new Error("EIO")) : Promise.resolve([null]),
  };
  await assert.rejects(cache.get(source), /EIO/);
  failing = false;
  assert.deepEqual(await cache.get(source), [null]);
});
