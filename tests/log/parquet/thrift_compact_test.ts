import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import {
  binary,
  bool,
  choice,
  decodeThrift,
  encodeThrift,
  i32,
  list,
  optional,
  required,
  size32,
  size64,
  struct,
  text,
  type ThriftType,
  type ThriftValue,
} from "../../../src/log/parquet/thrift_compact.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

const EMPTY = struct({});
const SAMPLE = struct({
  number: required(1, i32),
  size: required(2, size64),
  text: required(3, text),
  numbers: required(4, list(size32)),
  structs: required(5, list(struct({ flag: required(1, bool), far: optional(15, size64) }))),
  bytes: required(6, list(binary)),
  flags: required(7, list(bool)),
  nested: required(8, struct({ empty: required(1, EMPTY) })),
  absent: optional(9, text),
  color: required(20, choice({ RED: 0, GREEN: 3 })),
  flag: optional(21, bool),
});

const VALUE: ThriftValue<typeof SAMPLE> = {
  number: -3,
  size: 2 ** 40,
  text: "é",
  numbers: [1, 2, 300],
  structs: [{ flag: true }, { flag: false, far: 7 }],
  bytes: Array.from({ length: 40 }, () => Buffer.alloc(3)),
  flags: [true, false],
  nested: { empty: {} },
  color: "GREEN",
  flag: false,
};

test("encodeThrift() writes the Thrift compact protocol", () => {
  const field = <Value>(type: ThriftType<Value>, value: Value) => [
    ...encodeThrift(struct({ a: required(1, type) }) as ThriftType<{ a: Value }>, { a: value }),
  ];
  // From the specification: field headers with id delta and type, zigzag integers, and sizes.
  assert.deepEqual([...encodeThrift(EMPTY, {})], [0]);
  assert.deepEqual(field(i32, -1), [0x15, 1, 0]);
  assert.deepEqual(field(size64, 64), [0x16, 0x80, 1, 0]);
  const [yes, no] = [true, false];
  assert.deepEqual([field(bool, yes), field(bool, no)], [[0x11, 0], [0x12, 0]]);
  assert.deepEqual(field(text, "ab"), [0x18, 2, 0x61, 0x62, 0]);
  assert.deepEqual(field(list(i32), [1, 2]), [0x19, 0x25, 2, 4, 0]);
  assert.deepEqual(field(list(i32), Array(15).fill(0)), [
    ...[0x19, 0xf5, 15, ...Array(15).fill(0), 0],
  ]);
  assert.deepEqual(field(struct({ b: required(3, i32) }), { b: 0 }), [0x1c, 0x35, 0, 0, 0]);
});

test("decodeThrift() restores what encodeThrift() wrote, even when surrounded by other bytes", () => {
  const bytes = encodeThrift(SAMPLE, VALUE);
  const { value, end } = decodeThrift(SAMPLE, Buffer.concat([Buffer.of(9, 9), bytes, bytes]), 2);
  assert.equal(end, 2 + bytes.length);
  assert.deepEqual(value, VALUE);
});

test("decodeThrift() skips undeclared fields", () => {
  const bytes = encodeThrift(SAMPLE, VALUE);
  const declared = struct({ numbers: required(4, list(size32)), flag: required(21, bool) });
  const { value, end } = decodeThrift(declared, bytes);
  assert.deepEqual(value, { numbers: VALUE.numbers, flag: false });
  assert.equal(end, bytes.length);
});

test("decodeThrift() rejects a field that is missing, mistyped or out of range", () => {
  const bytes = encodeThrift(SAMPLE, VALUE);
  const others: ThriftType<unknown>[] = [
    struct({ absent: required(9, text) }),
    struct({ number: required(1, text) }),
    struct({ number: required(1, size32) }),
    struct({ size: required(2, i32) }),
    struct({ numbers: required(4, list(text)) }),
    struct({ numbers: required(4, list(choice({ ONE: 1, TWO: 2 }))) }),
    struct({ flag: required(21, i32) }),
  ];
  for (const [number, type] of others.entries()) {
    assert.throws(() => decodeThrift(type, bytes), SegmentError, `${number}`);
  }
});

test("decodeThrift() rejects a struct truncated at any byte", () => {
  const bytes = encodeThrift(SAMPLE, VALUE);
  for (const type of [SAMPLE, EMPTY] as ThriftType<unknown>[]) {
    for (let end = 0; end < bytes.length; end++) {
      assert.throws(() => decodeThrift(type, bytes.subarray(0, end)), SegmentError, `at ${end}`);
    }
  }
});

const HOSTILE: [string, number[]][] = [
  ["a list of two billion items", [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0]],
  ["a string longer than the input", [0x18, 100, 0, 0]],
  ["an endless size", [0x18, ...Array(20).fill(0x80), 0, 0]],
  ["an endless number", [0x15, ...Array(20).fill(0x80), 0, 0]],
  ["an integer that a number cannot represent", [0x16, ...Array(8).fill(0xff), 0x7f, 0]],
  ["a map", [0x1b, 0, 0]],
  ["an unknown type", [0x1d, 0, 0]],
  ["a field out of order", [0x15, 0, 0x05, 2, 0, 0]],
  ["endlessly nested structs", [...Array(1000).fill(0x1c), ...Array(1001).fill(0)]],
  ["endlessly nested lists", [0x19, ...Array(1000).fill(0x19), 0, 0]],
  ["a million integers", [0x19, 0xf5, 0xc0, 0x84, 0x3d, ...Array(1_000_001).fill(0)]],
  ["a million structs", [0x19, 0xfc, 0xc0, 0x84, 0x3d, ...Array(1_000_001).fill(0)]],
];

test("decodeThrift() rejects input that would need unbounded time or memory", () => {
  const types: ThriftType<unknown>[] = [
    EMPTY,
    ...[i32, size64, binary, list(i32), list(EMPTY), EMPTY].map((type) =>
      struct({ a: required(1, type as ThriftType<unknown>) })
    ),
  ];
  for (const [name, bytes] of HOSTILE) {
    for (const type of types) {
      assert.throws(() => decodeThrift(type, Buffer.from(bytes)), SegmentError, name);
    }
  }
});

test(`decodeThrift() decodes or rejects any bytes (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 20_000; run++) {
    const bytes = encodeThrift(SAMPLE, VALUE);
    for (let flips = 1 + random.below(3); flips > 0; flips--) {
      bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
    }
    try {
      assert.ok(decodeThrift(SAMPLE, bytes).end <= bytes.length);
    } catch (error) {
      assert.ok(error instanceof SegmentError, String(error));
    }
  }
});
