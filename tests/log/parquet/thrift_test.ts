import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { parseThrift, type ThriftStruct } from "../../../src/log/parquet/thrift.ts";

/** Plain values, for comparison. */
function plain(struct: ThriftStruct): Record<number, unknown> {
  return Object.fromEntries(
    [...struct].map(([id, value]) => [id, value instanceof Map ? plain(value) : value]),
  );
}

const VALID: [what: string, bytes: number[], fields: Record<number, unknown>][] = [
  ["an empty structure", [0], {}],
  ["a true boolean", [0x11, 0], { 1: 1 }],
  ["a false boolean", [0x12, 0], { 1: 0 }],
  ["a byte", [0x13, 0x7f, 0], { 1: 127 }],
  ["a negative byte", [0x13, 0xff, 0], { 1: -1 }],
  ["a 16-bit integer", [0x14, 0x03, 0], { 1: -2 }],
  ["a 32-bit integer", [0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0], { 1: 2 ** 31 - 1 }],
  ["a 64-bit integer", [0x16, 0x80, 0x80, 0x80, 0x80, 0x20, 0], { 1: 2 ** 32 }],
  ["an integer with more bytes than it needs", [0x15, 0x82, 0x80, 0x00, 0], { 1: 1 }],
  ["a double", [0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0], { 1: null }],
  ["a binary", [0x18, 2, 0xff, 0xff, 0], { 1: null }],
  ["an empty list", [0x19, 0x05, 0], { 1: null }],
  ["a list of integers", [0x19, 0x25, 2, 4, 0], { 1: null }],
  ["a list of booleans", [0x19, 0x21, 1, 2, 0], { 1: null }],
  ["a long list", [0x19, 0xf5, 16, ...Array(16).fill(1), 0], { 1: null }],
  ["a list of structures", [0x19, 0x2c, 0x15, 2, 0, 0, 0], { 1: null }],
  ["a structure", [0x1c, 0x25, 6, 0, 0], { 1: { 2: 3 } }],
  ["a distance between fields", [0x15, 2, 0xf5, 4, 0], { 1: 1, 16: 2 }],
  ["an id of its own", [0x05, 40, 2, 0], { 20: 1 }],
  ["the largest id", [0x05, 0xfe, 0xff, 0x03, 2, 0], { 32767: 1 }],
];

test("parseThrift() parses what Parquet uses", () => {
  for (const [what, bytes, fields] of VALID) {
    // Surrounded, since pages stand between others.
    const { struct, end } = parseThrift(Uint8Array.of(9, 9, ...bytes, 9), 2);
    assert.deepEqual(plain(struct), fields, what);
    assert.equal(end, 2 + bytes.length, what);
  }
});

test("parseThrift() rejects a structure that ends early", () => {
  for (const [what, bytes] of VALID) {
    for (let length = 0; length < bytes.length; length++) {
      const cut = Uint8Array.from(bytes.slice(0, length));
      assert.throws(() => parseThrift(cut, 0), /^SegmentError: has (truncated|a) Thrift/, what);
    }
  }
});

const FILLER = Array(100).fill(0);
/** Values beyond the limit, each of one byte. */
const MANY = 2 ** 20 + 1;
const MANY_IN_LIST = [0x19, 0xf3, 0x81, 0x80, 0x40];

const INVALID: [what: string, bytes: Iterable<number>, message: RegExp][] = [
  [
    "a list of 2^31",
    [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07, ...FILLER],
    /a Thrift list of 2147/,
  ],
  [
    "a list longer than what remains",
    [0x19, 0xf3, 102, ...FILLER],
    /a Thrift list of 102 elements/,
  ],
  ["a binary of 2^31", [0x18, 0xff, 0xff, 0xff, 0xff, 0x07, ...FILLER], /truncated/],
  ["an integer of eleven bytes", [0x16, ...Array(11).fill(0x80), 0], /integer that is too long/],
  ["a map", [0x1b, ...FILLER], /a Thrift value of type 11/],
  ["a set", [0x1a, ...FILLER], /a Thrift value of type 10/],
  ["a type that does not exist", [0x1f, ...FILLER], /a Thrift value of type 15/],
  ["lists of an unknown type", [0x19, 0x1e, ...FILLER], /a Thrift value of type 14/],
  ["structures in structures", [...Array(20).fill(0x1c), ...FILLER], /nested too deeply/],
  ["lists in lists", [...Array(40).fill(0x19), ...FILLER], /a Thrift list of 1 elements/],
  ["the same field twice", [0x15, 2, 0x05, 2, 2, 0], /the Thrift field 1 twice/],
  ["an earlier double for a field", [0x17, ...Array(8).fill(0), 0x05, 2, 2, 0], /field 1 twice/],
  ["the field 0", [0x05, 0, 2, 0], /has a Thrift field 0$/],
  ["the field -1", [0x05, 1, 2, 0], /has a Thrift field -1$/],
  ["the field 2^15", [0x05, 0x80, 0x80, 0x04, 2, 0], /has a Thrift field 32768$/],
  // Its lower 32 bits are those of field 2.
  ["the field 2^32 + 2", [0x05, 0x84, 0x80, 0x80, 0x80, 0x20, 2, 0], /a Thrift field 4294967298$/],
  [
    "too many values",
    Buffer.concat([Buffer.from(MANY_IN_LIST), Buffer.alloc(MANY + 1)]),
    /more than/,
  ],
];

test("parseThrift() rejects what would exhaust a parser, or what another one reads differently", () => {
  for (const [what, bytes, message] of INVALID) {
    assert.throws(() => parseThrift(Uint8Array.from(bytes), 0), message, what);
  }
});
