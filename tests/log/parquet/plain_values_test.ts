import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  PlainValues,
  plainValues,
  SEGMENT_PAGE_BYTES,
} from "../../../src/log/parquet/plain_values.ts";

function textsOf({ bytes }: PlainValues): string[] {
  return [...plainValues(bytes)].map((value) => Buffer.from(value).toString());
}

test("PlainValues.add() puts the length of a value before it, and plainValues() finds it", () => {
  const column = new PlainValues();
  column.add(Buffer.from("ab"));
  column.add(Buffer.from("-cde-"), 1, 4);
  column.add(Buffer.alloc(0));
  assert.equal(column.bytes.toString("hex"), "020000006162" + "03000000636465" + "00000000");
  assert.deepEqual(textsOf(column), ["ab", "cde", ""]);
});

test("PlainValues.addFixed() and reserve() put nothing before a value", () => {
  const column = new PlainValues();
  column.addFixed(Buffer.from("ab"));
  const at = column.reserve(2);
  column.memory.write("cd", at);
  assert.equal(column.bytes.toString(), "abcd");
});

test("PlainValues.pages() ends a page at the first value that reaches its size", () => {
  const column = new PlainValues();
  assert.deepEqual(column.pages(), []);
  const sizes = [SEGMENT_PAGE_BYTES - 5, 10, 1, 3 * SEGMENT_PAGE_BYTES, 1];
  sizes.forEach((size, n) => column.add(Buffer.alloc(size, `${n}`)));
  const pages = column.pages();
  assert.deepEqual(pages.map(({ rows }) => rows), [2, 2, 1]);
  assert.ok(Buffer.concat(pages.map(({ values }) => values)).equals(column.bytes));
});

test("PlainValues.clear() forgets the values", () => {
  const column = new PlainValues();
  column.add(Buffer.alloc(20_000_000));
  column.clear();
  assert.deepEqual([column.bytes.length, column.pages()], [0, []]);
  column.add(Buffer.from("a"));
  assert.deepEqual(textsOf(column), ["a"]);
});
