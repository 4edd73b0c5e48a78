import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { SequentialReader } from "../../../src/log/storage/sequential_reader.ts";
import { simulatedFile } from "../../support/simulated_disk.ts";

const MIB = 1024 * 1024;

async function readLines(text: string | Uint8Array, start = 0, end = text.length) {
  const reader = new SequentialReader(await simulatedFile(text), start, end);
  const lines: string[] = [];
  for (
    let line = await reader.readLine(Infinity);
    line !== null;
    line = await reader.readLine(Infinity)
  ) lines.push(line.toString());
  return { lines, offset: reader.offset };
}

test("readLine() gives the lines of the range and stops at what has no LF", async () => {
  assert.deepEqual(await readLines(""), { lines: [], offset: 0 });
  assert.deepEqual(await readLines("a\n\nbc\n"), { lines: ["a", "", "bc"], offset: 6 });
  assert.deepEqual(await readLines("a\nbc"), { lines: ["a"], offset: 2 });
  assert.deepEqual(await readLines("a\nbc\nd\n", 2, 5), { lines: ["bc"], offset: 5 });
  assert.deepEqual(await readLines("a\nbc\nd\n", 2, 4), { lines: [], offset: 2 });
});

test("readLine() gives lines longer than what is read at once", async () => {
  const sizes = [0, 3 * MIB, MIB - 1, MIB, 1, 2 * MIB + 1, 5];
  const expected = sizes.map((size, number) => String(number).repeat(size));
  const { lines } = await readLines(expected.join("\n") + "\n");
  assert.deepEqual(lines.map((line) => line.length), sizes);
  lines.forEach((line, number) => assert.ok(line === expected[number], `line ${number}`));
});

test("readLine() refuses a line over its limit and consumes nothing of it", async () => {
  for (const [text, limit] of [["abc\n", 2], ["abc", 2], ["x".repeat(2 * MIB), 10]] as const) {
    const reader = new SequentialReader(await simulatedFile(text), 0, text.length);
    assert.equal(await reader.readLine(limit), null);
    assert.equal(reader.offset, 0);
    assert.equal((await reader.readSome(3)).toString(), text.slice(0, 3));
  }
  const reader = new SequentialReader(await simulatedFile("abc\n"), 0, 4);
  assert.equal((await reader.readLine(3))?.toString(), "abc");
});

test("readSome() gives all bytes of the range in pieces up to the limit", async () => {
  const bytes = Buffer.from(Array.from({ length: 3 * MIB }, (_, i) => i % 251));
  const reader = new SequentialReader(await simulatedFile(bytes), 5, bytes.length - 7);
  const pieces: Buffer[] = [];
  for (;;) {
    const offset = reader.offset;
    const piece = await reader.readSome(700_000);
    if (piece.length === 0) break;
    assert.ok(piece.length <= 700_000);
    assert.equal(reader.offset, offset + piece.length);
    pieces.push(Buffer.from(piece));
  }
  assert.ok(Buffer.concat(pieces).equals(bytes.subarray(5, -7)));
});

test("SequentialReader ends where a file is shorter than its range", async () => {
  const reader = new SequentialReader(await simulatedFile("a\nb"), 0, 100);
  assert.equal((await reader.readLine(10))?.toString(), "a");
  assert.equal(await reader.readLine(10), null);
  assert.equal((await reader.readSome(10)).toString(), "b");
  assert.equal((await reader.readSome(10)).length, 0);
});

test("SequentialReader.readWhole() gives so many bytes, or none where there are fewer", async () => {
  const bytes = Buffer.alloc(5_000_000, "abcdefg");
  const reader = new SequentialReader(await simulatedFile(bytes), 0, bytes.length - 1);
  for (const sizeBytes of [0, 3, 1_500_000, 3_400_000, 10]) {
    const { offset } = reader;
    const piece = await reader.readWhole(sizeBytes);
    assert.ok(piece!.equals(bytes.subarray(offset, offset + sizeBytes)), `${sizeBytes}`);
  }
  const { offset } = reader;
  assert.equal(await reader.readWhole(bytes.length - offset), null);
  assert.equal(reader.offset, offset);
  const rest = await reader.readWhole(bytes.length - 1 - offset);
  assert.ok(rest!.equals(bytes.subarray(offset, -1)));
  assert.equal(await reader.readWhole(1), null);
});

test("SequentialReader.skip() takes of what is at hand, and no more", async () => {
  const reader = new SequentialReader(await simulatedFile("ab\ncd\n"), 1, 6);
  assert.equal(reader.atHand.toString(), "", "nothing is read before it is asked for");
  assert.equal((await reader.readLine(10))?.toString(), "b");
  assert.equal(reader.atHand.toString(), "cd\n");
  reader.skip(1);
  assert.deepEqual([reader.atHand.toString(), reader.offset], ["d\n", 4]);
  assert.throws(() => reader.skip(3), /at hand/);
  reader.skip(2);
  assert.equal(await reader.readLine(10), null);
});

test("SequentialReader.close() leaves its memory to one of the next readers", async () => {
  const open = async (text: string) =>
    new SequentialReader(await simulatedFile(text), 0, text.length);
  const first = await open("first\n");
  const { buffer } = (await first.readLine(10))!;
  first.close();
  first.close();
  const next = [await open("second\n"), await open("third\n")];
  const lines = [];
  for (const reader of next) lines.push((await reader.readLine(10))!);
  assert.deepEqual(lines.map((line) => line.toString()), ["second", "third"]);
  assert.deepEqual(lines.map((line) => line.buffer === buffer), [true, false]);
});
