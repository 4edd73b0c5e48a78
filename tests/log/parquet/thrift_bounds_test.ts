import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { deserializeTCompactProtocol } from "hyparquet/src/thrift.js";
import { ByteWriter } from "hyparquet-writer";
import { serializeTCompactProtocol } from "hyparquet-writer/src/thrift.js";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import {
  thriftBinary,
  thriftFieldStart,
  thriftStructEnd,
} from "../../../src/log/parquet/thrift_bounds.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

const STRUCT = {
  field_1: 7,
  field_2: -3n,
  field_3: "text",
  field_4: [1, 2, 3],
  field_5: [{ field_1: true }, { field_1: false, field_20: 1.5 }],
  field_6: Array.from({ length: 40 }, () => new Uint8Array(3)),
  field_7: [true, false],
  field_8: { field_1: {} },
};

function encode(value: Record<`field_${number}`, unknown>): Buffer {
  const writer = new ByteWriter();
  serializeTCompactProtocol(writer, value);
  return Buffer.from(writer.getBytes());
}

test("thriftStructEnd() finds the end of a struct among other bytes", () => {
  const struct = encode(STRUCT);
  const bytes = Buffer.concat([Buffer.from([9, 9]), struct, Buffer.from([9])]);
  assert.equal(thriftStructEnd(bytes, 2, bytes.length), 2 + struct.length);
});

test("thriftStructEnd() refuses a struct that is cut off anywhere", () => {
  const bytes = encode(STRUCT);
  for (let end = 0; end < bytes.length; end++) {
    assert.throws(() => thriftStructEnd(bytes, 0, end), SegmentError, `cut at ${end}`);
  }
});

test("thriftFieldStart() finds the value of a field, whatever stands behind it", () => {
  const bytes = encode(STRUCT);
  const at = thriftFieldStart(bytes, 0, bytes.length, 3)!;
  const { start, end } = thriftBinary(bytes, at, bytes.length);
  assert.equal(bytes.toString("latin1", start, end), "text");
  // Only the header of the field need be there.
  assert.equal(thriftFieldStart(bytes, 0, at, 3), at);
  assert.throws(() => thriftFieldStart(bytes, 0, at - 1, 3), SegmentError);
  assert.equal(thriftFieldStart(bytes, 0, bytes.length, 9), null);
});

test("thriftBinary() tells of bytes beyond the end, and refuses a length that is cut off", () => {
  const bytes = encode({ field_1: "x".repeat(300) });
  assert.deepEqual(thriftBinary(bytes, 1, 3), { start: 3, end: 303 });
  assert.throws(() => thriftBinary(bytes, 1, 2), SegmentError);
});

const HOSTILE: [string, number[]][] = [
  ["a list of two thousand million items", [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0]],
  ["a text longer than the bytes", [0x18, 100, 0, 0]],
  ["a size without end", [0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0]],
  ["a number without end", [0x15, ...Array(20).fill(0x80), 0, 0]],
  ["a map", [0x1b, 0, 0]],
  ["an unknown type", [0x1d, 0, 0]],
  ["structs in structs without end", [...Array(1000).fill(0x1c), ...Array(1001).fill(0)]],
  ["lists in lists without end", [0x19, ...Array(1000).fill(0x19), 0, 0]],
];

test("thriftStructEnd() refuses what would make a parser that trusts it run out of memory", () => {
  for (const [name, bytes] of HOSTILE) {
    assert.throws(
      () => thriftStructEnd(Uint8Array.from(bytes), 0, bytes.length),
      SegmentError,
      name,
    );
  }
});

test(`what thriftStructEnd() lets pass, the parser reads to the same end (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 20_000; run++) {
    const bytes = encode(STRUCT);
    for (let flips = 1 + random.below(3); flips > 0; flips--) {
      bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
    }
    let end;
    try {
      end = thriftStructEnd(bytes, 0, bytes.length);
    } catch (error) {
      assert.ok(error instanceof SegmentError);
      continue;
    }
    const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), offset: 0 };
    deserializeTCompactProtocol(reader);
    assert.equal(reader.offset, end);
  }
});
