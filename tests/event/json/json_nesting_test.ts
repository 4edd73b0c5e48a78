import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonNesting } from "../../../src/event/json/json_nesting.ts";

test("JsonNesting.path() names the current members and items", () => {
  const nesting = new JsonNesting();
  assert.deepEqual(nesting.path(), []);
  nesting.open("object");
  assert.deepEqual(nesting.path(), []);
  nesting.addName("a");
  nesting.addName("b");
  nesting.open("array");
  nesting.nextItem();
  nesting.open("array");
  nesting.open("object");
  assert.deepEqual(nesting.path(), ["b", 1, 0]);
  nesting.addName("c");
  assert.deepEqual(nesting.path(), ["b", 1, 0, "c"]);
  nesting.close();
  nesting.close();
  nesting.close();
  assert.equal(nesting.depth, 1);
  assert.ok(nesting.isInObject);
  assert.deepEqual(nesting.path(), ["b"]);
});

test("JsonNesting.path() is bounded", () => {
  const nesting = new JsonNesting();
  for (let level = 0; level < 1000; level++) nesting.open("array");
  assert.equal(nesting.depth, 1000);
  assert.deepEqual(nesting.path(), new Array(16).fill(0));
});

test("JsonNesting.addName() finds repetitions in small and large objects alone", () => {
  const nesting = new JsonNesting();
  for (let outer = 0; outer < 3; outer++) {
    nesting.open("object");
    assert.ok(nesting.addName("name0"));
  }
  for (let count = 1; count < 100; count++) {
    assert.ok(nesting.addName(`name${count}`));
    assert.ok(!nesting.addName(`name${count >> 1}`));
  }
  nesting.close();
  assert.ok(nesting.addName("name1"));
  assert.ok(!nesting.addName("name0"));
  nesting.open("object");
  for (let count = 0; count < 100; count++) assert.ok(nesting.addName(`name${count}`));
});
