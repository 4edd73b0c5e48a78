/**
 * Finds the parts of a segment's footer without reading the long ones: the beginning with the
 * places of all row groups, then the values of its keys, which may be as long as the segment has
 * streams. Nothing is allocated for a size that the file does not bear out.
 */
import { Buffer } from "node:buffer";
import { FOOTER_HEAD_BYTES_MAX, SEGMENT_FOOTER_BYTES_MAX } from "../../limits.ts";
import type { DecodeMemory } from "./decode_memory.ts";
import { SegmentError } from "./segment_error.ts";
import type { StorageFile } from "../storage/storage.ts";
import { thriftBinary, thriftFieldStart, thriftStructEnd } from "./thrift_bounds.ts";

/** What of a footer is read at first; it mostly has the places of all row groups. */
export const FOOTER_READ_BYTES: number = 64 * 1024;

export const MAGIC: Buffer = Buffer.from("PAR1");
/** The length of the footer, then the magic bytes. */
const TRAILER_BYTES = 8;

/** Bytes [start, end) of a file. */
export interface FileRange {
  start: number;
  end: number;
}

export interface FooterLayout {
  /** Where in the file the footer starts. */
  start: number;
  /**
   * A Parquet footer of its own, with all but the keys and what follows them; null once its row
   * groups have been read: 30 KiB for each of a hundred segments.
   */
  head: Buffer | null;
  /** The values by their keys. */
  values: ReadonlyMap<string, FileRange>;
}

/** Number of the list of keys and values in Parquet's FileMetaData. */
const KEY_VALUES_FIELD = 5;
const STRUCT_TYPE = 12;
/** How a field of bytes begins that is numbered right behind the one before it. */
const NEXT_BINARY = 0x18;
const STOP = 0;
/** An entry of the list up to its value: two field headers, two lengths, a key. */
const ENTRY_READ_BYTES = 64;
const KEYS_MAX = 8;
/** What follows the keys: who wrote the file, and how its columns are ordered. */
const REST_BYTES_MAX = 4096;

/** @throws {SegmentError} when the file is no Parquet file of this program. */
export async function readFooterLayout(
  file: StorageFile,
  sizeBytes: number,
): Promise<FooterLayout> {
  const footer = await findFooter(file, sizeBytes);
  const { head, keysStart } = await readHead(file, footer);
  const { values, end } = await readKeys(file, keysStart, footer.end);
  await checkRest(file, { start: end, end: footer.end });
  return { start: footer.start, head, values };
}

/**
 * Reads [start, end) of a file. @param memory where to; new when left out.
 * @throws {SegmentError} when it ends before.
 */
export async function readRange(
  file: StorageFile,
  start: number,
  end: number,
  memory?: DecodeMemory,
): Promise<Buffer> {
  const bytes = memory?.take(end - start) ?? Buffer.allocUnsafeSlow(end - start);
  await readInto(file, start, bytes);
  return bytes;
}

/** Fills `bytes` from a place of a file. @throws {SegmentError} when that ends before. */
export async function readInto(
  file: StorageFile,
  start: number,
  bytes: Uint8Array,
): Promise<void> {
  const readBytes = await file.read(bytes, start);
  if (readBytes === bytes.length) return;
  throw new SegmentError(
    `the file ends at byte ${start + readBytes}, before ${start + bytes.length}`,
  );
}

async function findFooter(file: StorageFile, sizeBytes: number): Promise<FileRange> {
  if (sizeBytes < MAGIC.length + TRAILER_BYTES) throw new SegmentError(`has ${sizeBytes} bytes`);
  const end = sizeBytes - TRAILER_BYTES;
  const opening = await readRange(file, 0, MAGIC.length);
  const trailer = await readRange(file, end, sizeBytes);
  const isParquet = opening.equals(MAGIC) && trailer.subarray(-MAGIC.length).equals(MAGIC);
  if (!isParquet) throw new SegmentError("not a Parquet file");
  const footerBytes = trailer.readUInt32LE();
  const start = end - footerBytes;
  if (start < MAGIC.length || footerBytes > SEGMENT_FOOTER_BYTES_MAX) {
    throw new SegmentError(`a footer of ${footerBytes} bytes in a file of ${sizeBytes}`);
  }
  return { start, end };
}

async function readHead(
  file: StorageFile,
  { start, end }: FileRange,
): Promise<{ head: Buffer; keysStart: number }> {
  for (let bytes = FOOTER_READ_BYTES;; bytes *= 4) {
    const window = await readRange(file, start, Math.min(end, start + bytes));
    const isAll = start + window.length === end || bytes >= FOOTER_HEAD_BYTES_MAX;
    const keysAt = findKeys(window, isAll);
    // The field begins with a byte of its own.
    if (keysAt !== null) {
      return { head: endHead(window.subarray(0, keysAt - 1)), keysStart: start + keysAt };
    }
    if (isAll) throw new SegmentError("a footer without keys");
  }
}

/** Null where the window does not reach so far. */
function findKeys(window: Buffer, isAll: boolean): number | null {
  try {
    return thriftFieldStart(window, 0, window.length, KEY_VALUES_FIELD);
  } catch (error) {
    if (isAll || !(error instanceof SegmentError)) throw error;
    return null;
  }
}

/** Fields as a whole file's footer. */
function endHead(fields: Buffer): Buffer {
  const trailer = Buffer.alloc(1 + TRAILER_BYTES, MAGIC);
  trailer[0] = STOP;
  trailer.writeUInt32LE(fields.length + 1, 1);
  MAGIC.copy(trailer, 5);
  return Buffer.concat([fields, trailer]);
}

async function readKeys(
  file: StorageFile,
  start: number,
  end: number,
): Promise<{ values: Map<string, FileRange>; end: number }> {
  const values = new Map<string, FileRange>();
  const [list] = await readRange(file, start, Math.min(end, start + 1));
  const count = (list ?? 0) >> 4;
  if (list === undefined || (list & 0xf) !== STRUCT_TYPE || count > KEYS_MAX) throw malformed();
  let at = start + 1;
  for (let number = 0; number < count; number++) {
    const { key, value } = await readEntry(file, at, end);
    if (values.has(key)) throw new SegmentError(`${key} is there twice`);
    values.set(key, value);
    at = value.end + 1;
  }
  return { values, end: at };
}

async function readEntry(
  file: StorageFile,
  start: number,
  footerEnd: number,
): Promise<{ key: string; value: FileRange }> {
  const bytes = await readRange(file, start, Math.min(footerEnd, start + ENTRY_READ_BYTES));
  const key = thriftBinary(bytes, 1, bytes.length);
  if (bytes[0] !== NEXT_BINARY || bytes[key.end] !== NEXT_BINARY) throw malformed();
  const value = thriftBinary(bytes, key.end + 1, bytes.length);
  const range = { start: start + value.start, end: start + value.end };
  if (range.end >= footerEnd) throw malformed();
  const [stop] = await readRange(file, range.end, range.end + 1);
  if (stop !== STOP) throw malformed();
  return { key: bytes.toString("latin1", key.start, key.end), value: range };
}

async function checkRest(file: StorageFile, { start, end }: FileRange): Promise<void> {
  const bytes = await readRange(file, start, Math.min(end, start + REST_BYTES_MAX));
  if (thriftStructEnd(bytes, 0, bytes.length) !== end - start) {
    throw new SegmentError("the footer has another size");
  }
}

function malformed(): SegmentError {
  return new SegmentError("malformed keys in the footer");
}
