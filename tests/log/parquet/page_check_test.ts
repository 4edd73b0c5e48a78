import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { checkIndices, checkLiterals, checkPages } from "../../../src/log/parquet/page_check.ts";
import { snappyLiterals } from "../../support/crafted_segment.ts";
import {
  encodeTree,
  I32,
  setField,
  STRUCT,
  structAt,
  type ThriftField,
} from "../../support/thrift_tree.ts";

const ROWS = 20;
const BODY = Buffer.alloc(50);
/** A run of 20 definition levels, each 1. */
const LEVELS = Buffer.of(2 * ROWS, 1);

function fields(values: Record<number, number>): ThriftField[] {
  return Object.entries(values).map(([id, value]) => ({
    id: Number(id),
    type: I32,
    value: BigInt(value),
  }));
}

function withStruct(outer: Record<number, number>, id: number, inner: Record<number, number>) {
  return [...fields(outer), { id, type: STRUCT, value: fields(inner) }];
}

interface Pages {
  dictionary?: ThriftField[];
  data: ThriftField[];
  body: Buffer;
  after: Buffer;
  rows: number;
  isOptional: boolean;
}

/** A valid chunk. */
function pages({ isOptional = false, hasDictionary = false } = {}): Pages {
  const body = Buffer.concat(isOptional ? [LEVELS, BODY] : [BODY]);
  const sizes = { 1: ROWS, 2: 0, 3: ROWS, 4: hasDictionary ? 8 : 0, 5: isOptional ? 2 : 0, 6: 0 };
  const data = withStruct({ 1: 3, 2: 1000, 3: body.length }, 8, sizes);
  const chunk: Pages = { data, body, after: Buffer.alloc(0), rows: ROWS, isOptional };
  if (hasDictionary) {
    chunk.dictionary = withStruct({ 1: 2, 2: 1000, 3: BODY.length }, 7, { 1: 3, 2: 0 });
  }
  return chunk;
}

function check({ dictionary, data, body, after, rows, isOptional }: Pages): void {
  const first = dictionary === undefined ? [] : [encodeTree(dictionary), BODY];
  const hasDictionary = dictionary !== undefined;
  checkPages(
    Buffer.concat([...first, encodeTree(data), body, after]),
    { rows, uncompressedBytes: 1000, isOptional, hasDictionary },
  );
}

test("checkPages() accepts the pages that the writer produces", () => {
  for (const isOptional of [false, true]) {
    for (const hasDictionary of [false, true]) check(pages({ isOptional, hasDictionary }));
  }
});

/** @param id the field to change in the header, or in its structure for the kind of page. */
type Case = [
  what: string,
  place: "data" | "dictionary" | "header" | "first",
  id: number,
  to: number,
];

const CASES: Case[] = [
  ["another kind of page", "header", 1, 0],
  ["a data page as the dictionary", "first", 1, 3],
  ["more bytes than the chunk may have", "header", 2, 1001],
  ["negative uncompressed bytes", "header", 2, -1],
  ["more bytes than there are", "header", 3, 53],
  ["fewer bytes than there are", "header", 3, 40],
  ["negative bytes", "header", 3, -1],
  ["more uncompressed bytes in the dictionary", "first", 2, 1001],
  ["a dictionary beyond the chunk", "first", 3, 1000],
  ["one value too many", "data", 1, ROWS + 1],
  ["no values", "data", 1, 0],
  ["one row too many", "data", 3, ROWS + 1],
  ["more nulls than rows", "data", 2, ROWS + 1],
  ["negative nulls", "data", 2, -1],
  ["another encoding", "data", 4, 5],
  ["levels beyond the page", "data", 5, 1000],
  ["negative levels", "data", 5, -1],
  ["fewer levels than rows", "data", 5, 0],
  ["repetition levels", "data", 6, 1],
  ["values that are not compressed", "data", 7, 0],
  ["an empty dictionary", "dictionary", 1, 0],
  ["a dictionary with more values than rows", "dictionary", 1, ROWS + 1],
  ["a negative dictionary", "dictionary", 1, -1],
  ["an encoded dictionary", "dictionary", 2, 8],
];

test("checkPages() rejects any other page", () => {
  for (const [what, place, id, to] of CASES) {
    const chunk = pages({ isOptional: true, hasDictionary: true });
    const header = place === "header" || place === "data" ? chunk.data : chunk.dictionary!;
    const inner = place === "data" ? 8 : 7;
    const target = place === "data" || place === "dictionary" ? structAt(header, inner) : header;
    setField(target, id, I32, BigInt(to));
    assert.throws(() => check(chunk), /^SegmentError: has a (malformed|page|list)/, what);
  }
});

test("checkPages() rejects nulls and levels in a required column", () => {
  for (const id of [2, 5]) {
    const chunk = pages();
    setField(structAt(chunk.data, 8), id, I32, 1n);
    assert.throws(() => check(chunk), /^SegmentError: has a malformed data page/);
  }
});

test("checkPages() rejects bytes after the data page, and a missing structure", () => {
  const longer = { ...pages(), after: Buffer.alloc(1) };
  assert.throws(() => check(longer), /^SegmentError: has a malformed data page/);
  const without = { ...pages(), data: fields({ 1: 3, 2: 1000, 3: BODY.length }) };
  assert.throws(() => check(without), /^SegmentError: has a malformed data page/);
});

const RUNS: [what: string, bits: number, bytes: number[], count: number, isValid: boolean][] = [
  ["a run", 8, [40, 7], 20, true],
  ["a run of values without bits", 0, [40], 20, true],
  ["two runs", 8, [20, 7, 20, 8], 20, true],
  ["a run of wide values", 17, [40, 1, 2, 3], 20, true],
  ["packed values", 4, [5, 1, 2, 3, 4, 5, 6, 7, 8], 16, true],
  ["packed values with padding", 4, [5, 1, 2, 3, 4, 5, 6, 7, 8], 13, true],
  ["a run, then packed values", 1, [24, 1, 3, 0xff], 20, true],
  ["a length with more bytes than it needs", 8, [0xa8, 0x80, 0x00, 7], 20, true],
  ["no values", 8, [], 1, false],
  ["too few values", 8, [38, 7], 20, false],
  ["one value too many", 8, [42, 7], 20, false],
  ["a run without its value", 8, [40], 20, false],
  ["a run without part of its value", 17, [40, 1, 2], 20, false],
  ["an empty run", 8, [0, 7, 40, 7], 20, false],
  ["an empty packed run", 8, [1, 40, 7], 20, false],
  ["too many packed groups", 4, [7, ...Array(12).fill(0)], 16, false],
  ["packed values that end early", 4, [5, 1, 2, 3, 4, 5, 6, 7], 16, false],
  ["a run of a billion", 8, [0x80, 0xa8, 0xd6, 0xb9, 0x07, 7], 20, false],
  ["a packed run of a billion without bits", 0, [0x81, 0xa8, 0xd6, 0xb9, 0x07], 20, false],
  ["a length that does not end", 8, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 20, false],
  ["indices of 33 bits", 33, [40, 1, 2, 3, 4, 5], 20, false],
];

test("checkIndices() accepts exactly as many indices as there are rows", () => {
  for (const [what, bits, bytes, count, isValid] of RUNS) {
    const check = () => checkIndices(Uint8Array.of(bits, ...bytes), count);
    if (isValid) check();
    else assert.throws(check, /^SegmentError: has malformed dictionary|a malformed run/, what);
  }
  assert.throws(() => checkIndices(new Uint8Array(), 1), /malformed dictionary indices/);
});

const SNAPPY: [what: string, bytes: Iterable<number>, isValid: boolean][] = [
  ["nothing", [], true],
  ["an empty page", [0], true],
  ["a literal of one byte", [1, 0, 65], true],
  ["a literal of 60 bytes", [60, 59 << 2, ...Array(60)], true],
  ["a literal with a length of one byte", [61, 60 << 2, 60, ...Array(61)], true],
  ["a literal with a length of two bytes", snappyLiterals(Buffer.alloc(70_000)), true],
  ["a literal with a length of four bytes", [1, 63 << 2, 1, 0, 0, 0, 1, 2], true],
  ["copies of each kind", [9, 0, 65, 1, 1, 2, 1, 0, 3, 1, 0, 0, 0], true],
  ["a literal beyond the page", [9, 4, 65], false],
  ["a literal of 2 GiB", [9, 63 << 2, 0xff, 0xff, 0xff, 0x7f, 65], false],
  ["a literal of -5 bytes", [9, 63 << 2, 0xfa, 0xff, 0xff, 0xff, 65], false],
  ["half a length", [9, 63 << 2, 0xfa], false],
  ["half a copy", [9, 0, 65, 2, 1], false],
];

test("checkLiterals() accepts elements within the page", () => {
  for (const [what, bytes, isValid] of SNAPPY) {
    const check = () => checkLiterals(Uint8Array.from(bytes));
    if (isValid) check();
    else assert.throws(check, /^SegmentError: has malformed Snappy/, what);
  }
});
