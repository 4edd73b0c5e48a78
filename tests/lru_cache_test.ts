import assert from "node:assert/strict";
import { test } from "node:test";
import { LruCache } from "../src/lru_cache.ts";

test("LruCache evicts the least recently used values beyond its limit", () => {
  const dropped: number[] = [];
  const cache = new LruCache<number>(10, (value) => value, (value) => dropped.push(value));
  cache.set("a", 4);
  cache.set("b", 5);
  assert.equal(cache.get("a"), 4);
  cache.set("c", 3);
  assert.deepEqual(dropped, [5]);
  assert.equal(cache.get("b"), undefined);
  cache.set("large", 11);
  assert.deepEqual(dropped, [5, 4, 3], "a value over the limit is cached alone");
  assert.equal(cache.get("large"), 11);
  cache.clear();
  assert.deepEqual([dropped.at(-1), cache.get("large")], [11, undefined]);
});

test("LruCache.load() loads a value once, even for concurrent callers", async () => {
  const cache = new LruCache<object>(10);
  let loads = 0;
  const load = () => {
    loads += 1;
    return Promise.resolve({});
  };
  const [first, second] = await Promise.all([cache.load("a", load), cache.load("a", load)]);
  assert.equal(first, second);
  assert.equal(await cache.load("a", load), first);
  assert.equal(loads, 1);
});

test("LruCache.load() does not cache a failed load", async () => {
  const cache = new LruCache<string>(10);
  await assert.rejects(cache.load("a", () => Promise.reject(new Error("EIO"))), /EIO/);
  assert.equal(await cache.load("a", () => Promise.resolve("later")), "later");
});
