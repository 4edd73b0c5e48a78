/**
 * Reads the recording from qemu's `blklogwrites` driver: every disk write and flush, in completion
 * order. The format is that of Linux's dm-log-writes (see log-writes.rst in the kernel
 * documentation): a superblock, then sector-aligned entries with their data.
 */
import { Buffer } from "node:buffer";
import type { FileHandle } from "node:fs/promises";

const MAGIC = 0x6a736677736872n;
const FLUSH = 1n;
const DISCARD = 4n;
const HEADER_BYTES = 32;

export interface LoggedWrite {
  /** Makes all earlier writes durable. */
  isFlush: boolean;
  /** Offset on the disk. */
  offsetBytes: number;
  lengthBytes: number;
  /** Offset of the data in the recording; null for zeros. */
  dataOffsetBytes: number | null;
  /** End offset of this entry in the recording. */
  endBytes: number;
}

/** Returns all entries in a recording. @throws {Error} if it has no superblock. */
export async function readWriteLog(file: FileHandle): Promise<LoggedWrite[]> {
  const superblock = await readAt(file, 0, HEADER_BYTES);
  if (superblock.readBigUInt64LE(0) !== MAGIC) throw new Error("the recording has no superblock");
  const sectorBytes = superblock.readUInt32LE(24);
  const { size } = await file.stat();
  const writes: LoggedWrite[] = [];
  for (let at = sectorBytes; at + sectorBytes <= size;) {
    const header = await readAt(file, at, HEADER_BYTES);
    const [sector, sectors, flags] = [0, 8, 16].map((place) => header.readBigUInt64LE(place));
    if (flags === 0n && sectors === 0n) break;
    const lengthBytes = Number(sectors) * sectorBytes;
    const dataOffsetBytes = at + sectorBytes;
    const hasData = (flags! & DISCARD) === 0n;
    at = dataOffsetBytes + (hasData ? lengthBytes : 0);
    // The machine was killed during this write.
    if (at > size) break;
    writes.push({
      isFlush: (flags! & FLUSH) !== 0n,
      offsetBytes: Number(sector) * sectorBytes,
      lengthBytes,
      dataOffsetBytes: hasData ? dataOffsetBytes : null,
      endBytes: at,
    });
  }
  return writes;
}

/** Applies entries to a disk image. */
export async function applyWrites(
  disk: FileHandle,
  log: FileHandle,
  writes: Iterable<LoggedWrite>,
): Promise<void> {
  for (const { offsetBytes, lengthBytes, dataOffsetBytes } of writes) {
    if (lengthBytes === 0) continue;
    const data = dataOffsetBytes === null
      ? Buffer.alloc(lengthBytes)
      : await readAt(log, dataOffsetBytes, lengthBytes);
    await disk.write(data, 0, lengthBytes, offsetBytes);
  }
}

async function readAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, offset);
  if (bytesRead < length) {
    throw new Error(`the recording has a truncated entry at byte ${offset}`);
  }
  return bytes;
}
