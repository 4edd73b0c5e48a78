import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { Dictionary } from "../../../src/log/parquet/dictionary.ts";

function addAll(dictionary: Dictionary, texts: string[]): string[] {
  return texts.map((text) => {
    const line = Buffer.from(`"${text}"`);
    return dictionary.addSpelled(line, 1, line.length - 1, Buffer.from);
  });
}

test("Dictionary gives each value one index, in the order in which values first come", () => {
  const dictionary = new Dictionary();
  const texts = ["b", "b", "a", "b", "é", "a", "a"];
  assert.deepEqual(addAll(dictionary, texts), texts);
  assert.deepEqual(dictionary.values.map(String), ["b", "a", "é"]);
  assert.deepEqual([...dictionary.indices], [0, 0, 1, 0, 2, 1, 1]);
});

test("Dictionary.addSpelled() keeps nothing of the memory of a line", () => {
  const dictionary = new Dictionary();
  const line = Buffer.alloc(1);
  for (const text of ["a", "b", "b", "a"]) {
    line.write(text);
    assert.equal(dictionary.addSpelled(line, 0, 1, Buffer.from), text);
  }
  assert.deepEqual([...dictionary.indices], [0, 1, 1, 0]);
});

test("Dictionary.repeat() gives a row the value of the row before, however it came", () => {
  const dictionary = new Dictionary();
  dictionary.addText("a", Buffer.from);
  dictionary.addValue(Buffer.from("own"));
  dictionary.repeat();
  dictionary.addText("a", Buffer.from);
  dictionary.repeat();
  assert.deepEqual([...dictionary.indices], [0, 1, 1, 0, 0]);
});

test("Dictionary.clear() forgets values and rows", () => {
  const dictionary = new Dictionary();
  addAll(dictionary, ["a", "b"]);
  dictionary.clear();
  assert.deepEqual(addAll(dictionary, ["b"]), ["b"]);
  assert.deepEqual(dictionary.values.map(String), ["b"]);
  assert.deepEqual([...dictionary.indices], [0]);
});
