import assert from "node:assert/strict";
import { test } from "node:test";
import { IdentityMap } from "../../src/service/identity_map.ts";

test("IdentityMap keeps identities apart by source and by batch id", () => {
  const map = new IdentityMap<number>();
  map.set("a", "b", 1);
  map.set("a", "c", 2);
  map.set("a b", "c", 3);
  assert.deepEqual([map.get("a", "b"), map.get("a", "c"), map.get("a b", "c")], [1, 2, 3]);
  assert.deepEqual([map.get("a", "b c"), map.get("b", "b")], [undefined, undefined]);
  assert.deepEqual([map.hasSource("a"), map.hasSource("b")], [true, false]);
});
