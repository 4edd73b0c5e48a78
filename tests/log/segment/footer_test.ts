import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { readFileMetaData } from "../../../src/log/segment/segment_footer.ts";
import { flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { sealCommits, smallBatches } from "../../support/test_segment.ts";

const TRAILER_BYTES = 8;
const CRC_BYTES = 4;

/** A segment, and where the CRC-32 of its footer starts. */
async function segment(): Promise<{ bytes: Buffer; start: number }> {
  const { storage } = await sealCommits([smallBatches(10)]);
  const bytes = storage.contents("0.parquet");
  const footerBytes = bytes.readUInt32LE(bytes.length - TRAILER_BYTES);
  return { bytes, start: bytes.length - TRAILER_BYTES - footerBytes - CRC_BYTES };
}

async function read(bytes: Buffer) {
  const disk = new SimulatedDisk(new Map([["f", bytes]]));
  return await readFileMetaData(await disk.open("f", "read"), bytes.length);
}

test("readFileMetaData() rejects a footer with any bit flipped", async () => {
  const { bytes, start } = await segment();
  for (let bit = 8 * start; bit < 8 * bytes.length; bit += 3) {
    await assert.rejects(
      read(flipBit(bytes, bit)),
      /^SegmentError: .*(CRC-32|size|magic)/,
      `bit ${bit}`,
    );
  }
});

test("readFileMetaData() rejects trailing bytes", async () => {
  const { bytes: whole, start } = await segment();
  const bytes = Buffer.concat([whole.subarray(0, -8), Buffer.of(0), whole.subarray(-8)]);
  bytes.writeUInt32LE(bytes.length - start - CRC_BYTES - TRAILER_BYTES, bytes.length - 8);
  bytes.writeUInt32LE(crc32(bytes.subarray(start + CRC_BYTES, -4)), start);
  await assert.rejects(read(bytes), /^SegmentError: the footer has trailing bytes/);
});
