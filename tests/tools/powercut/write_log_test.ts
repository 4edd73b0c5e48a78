/** Reads recordings of disk writes that qemu's `blklogwrites` driver made. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { applyWrites, readWriteLog } from "../../../tools/powercut/write_log.ts";
import { withFolder } from "../../../tools/support/program.ts";

const SECTOR_BYTES = 512;
const [FLUSH, DISCARD] = [1, 4];

function sector(...fields: (number | bigint)[]): Buffer {
  const bytes = Buffer.alloc(SECTOR_BYTES);
  fields.forEach((field, place) => bytes.writeBigUInt64LE(BigInt(field), place * 8));
  return bytes;
}

function superblock(): Buffer {
  const bytes = sector(0x6a736677736872n, 1, 0);
  bytes.writeUInt32LE(SECTOR_BYTES, 24);
  return bytes;
}

const data = (character: string) => Buffer.alloc(SECTOR_BYTES, character);

test("readWriteLog() returns writes, flushes and discards, and drops a torn last write", async () => {
  await withFolder(async (folder) => {
    const recording = [
      superblock(),
      ...[sector(3, 1, 0), data("a")],
      sector(0, 0, FLUSH),
      sector(4, 2, DISCARD),
      ...[sector(5, 1, FLUSH), data("b")],
      // Two sectors, one of which was written.
      ...[sector(0, 2, 0), data("c")],
    ];
    const log = await open(join(folder, "log"), "w+");
    const disk = await open(join(folder, "disk"), "w+");
    try {
      await log.writeFile(Buffer.concat(recording));
      await disk.writeFile(Buffer.alloc(8 * SECTOR_BYTES, "."));
      const writes = await readWriteLog(log);
      const seen = writes.map(({ isFlush, offsetBytes, lengthBytes }) =>
        [isFlush, offsetBytes / SECTOR_BYTES, lengthBytes / SECTOR_BYTES] as const
      );
      assert.deepEqual(seen, [[false, 3, 1], [true, 0, 0], [false, 4, 2], [true, 5, 1]]);
      await applyWrites(disk, log, writes);
      const bytes = Buffer.alloc(8 * SECTOR_BYTES);
      await disk.read(bytes, 0, bytes.length, 0);
      const firstOfSectors = Array.from(
        { length: 8 },
        (_, place) => String.fromCharCode(bytes[place * SECTOR_BYTES]!),
      );
      assert.equal(firstOfSectors.join(""), "...a\0b..");
    } finally {
      await log.close();
      await disk.close();
    }
  });
});
