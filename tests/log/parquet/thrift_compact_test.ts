import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import {
  binary,
  encodeThrift,
  FALSE,
  i32,
  i64,
  list,
  readThrift,
  struct,
  type ThriftFields,
  TRUE,
} from "../../../src/log/parquet/thrift_compact.ts";
import { SEED, SeededRandom } from "../../event/support/seeded_random.ts";

const FIELDS: ThriftFields = {
  1: i32(7),
  2: i64(-3),
  3: binary("text"),
  4: list([i32(1), i32(2), i32(300)]),
  5: list([struct({ 1: TRUE }), struct({ 1: FALSE, 14: i64(2 ** 40) })]),
  6: list(Array.from({ length: 40 }, () => binary(new Uint8Array(3)))),
  7: list([TRUE, FALSE]),
  8: struct({ 1: struct({}) }),
  9: undefined,
  20: FALSE,
};

test("encodeThrift() spells the compact protocol", () => {
  // From the specification: field headers of a step and a type, zigzag integers, sizes.
  const cases: [ThriftFields, number[]][] = [
    [{}, [0]],
    [{ 1: i32(-1), 4: i64(64) }, [0x15, 1, 0x36, 0x80, 1, 0]],
    [{ 2: TRUE, 3: FALSE }, [0x21, 0x12, 0]],
    [{ 1: binary("ab") }, [0x18, 2, 0x61, 0x62, 0]],
    [{ 1: list([i32(1), i32(2)]) }, [0x19, 0x25, 2, 4, 0]],
    [{ 1: list(Array(15).fill(i32(0))) }, [0x19, 0xf5, 15, ...Array(15).fill(0), 0]],
    [{ 1: struct({ 3: i32(0) }) }, [0x1c, 0x35, 0, 0, 0]],
  ];
  for (const [fields, bytes] of cases) assert.deepEqual([...encodeThrift(fields)], bytes);
});

test("readThrift() gives back what encodeThrift() wrote, among other bytes", () => {
  const bytes = encodeThrift(FIELDS);
  const { struct: read, end } = readThrift(Buffer.concat([Buffer.of(9, 9), bytes, bytes]), 2);
  assert.equal(end, 2 + bytes.length);
  assert.deepEqual([read.int(1), read.int(2)], [7, -3]);
  assert.equal(read.bytes(3).toString(), "text");
  assert.deepEqual(read.list(4), [1, 2, 300]);
  const [first, second] = read.structs(5);
  assert.deepEqual([first!.bool(1), second!.bool(1), second!.int(14)], [true, false, 2 ** 40]);
  assert.deepEqual(read.list(6), Array(40).fill(Buffer.alloc(3)));
  assert.deepEqual(read.list(7), [true, false]);
  assert.ok(!read.struct(8).struct(1).has(1));
  assert.deepEqual([read.has(9), read.has(20), read.bool(20)], [false, true, false]);
});

test("readThrift() passes over all fields but the one that is wanted", () => {
  const bytes = encodeThrift(FIELDS);
  for (const field of [1, 3, 5, 7, 20]) {
    const { struct: read, end } = readThrift(bytes, 0, field);
    assert.equal(end, bytes.length);
    const whole = readThrift(bytes).struct;
    assert.deepEqual(read.fields[field], whole.fields[field]);
    assert.deepEqual(Object.keys(read.fields), [`${field}`]);
  }
});

test("readThrift() refuses a field that is absent or of another type when it is asked for", () => {
  const { struct: read } = readThrift(encodeThrift(FIELDS));
  for (const field of [3, 9, 63]) assert.throws(() => read.int(field), SegmentError);
  for (const field of [1, 9]) {
    assert.throws(() => read.bytes(field), SegmentError);
    assert.throws(() => read.bool(field), SegmentError);
    assert.throws(() => read.list(field), SegmentError);
    assert.throws(() => read.struct(field), SegmentError);
  }
  assert.throws(() => read.structs(4), SegmentError);
});

test("readThrift() refuses a struct that is cut off anywhere", () => {
  const bytes = encodeThrift(FIELDS);
  for (let end = 0; end < bytes.length; end++) {
    assert.throws(() => readThrift(bytes.subarray(0, end)), SegmentError, `cut at ${end}`);
  }
});

const HOSTILE: [string, number[]][] = [
  ["a list of two thousand million items", [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0]],
  ["a text longer than the bytes", [0x18, 100, 0, 0]],
  ["a size without end", [0x18, ...Array(20).fill(0x80), 0, 0]],
  ["a number without end", [0x15, ...Array(20).fill(0x80), 0, 0]],
  ["an integer that a number can't hold", [0x16, ...Array(8).fill(0xff), 0x7f, 0]],
  ["a map", [0x1b, 0, 0]],
  ["an unknown type", [0x1d, 0, 0]],
  ["a field out of order", [0x15, 0, 0x05, 2, 0, 0]],
  ["a field of an unknown number", [0xf1, 0xf1, 0xf1, 0xf1, 0xf1, 0]],
  ["structs in structs without end", [...Array(1000).fill(0x1c), ...Array(1001).fill(0)]],
  ["lists in lists without end", [0x19, ...Array(1000).fill(0x19), 0, 0]],
  ["a million integers", [0x19, 0xf5, 0xc0, 0x84, 0x3d, ...Array(1_000_001).fill(0)]],
];

test("readThrift() refuses what would take time or memory without bounds", () => {
  for (const [name, bytes] of HOSTILE) {
    assert.throws(() => readThrift(Buffer.from(bytes)), SegmentError, name);
    assert.throws(() => readThrift(Buffer.from(bytes), 0, 9), SegmentError, `${name}, not wanted`);
  }
});

test(`readThrift() reads or refuses any bytes (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 20_000; run++) {
    const bytes = encodeThrift(FIELDS);
    for (let flips = 1 + random.below(3); flips > 0; flips--) {
      bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
    }
    try {
      assert.ok(readThrift(bytes).end <= bytes.length);
    } catch (error) {
      assert.ok(error instanceof SegmentError);
    }
  }
});
