/** The decoded values in one column of a row group, with accessors. */
import { Buffer } from "node:buffer";
import type { DecodedArray } from "hyparquet";
import { formatTimestamp } from "../../event/timestamp.ts";
import { sameBytes, uuidText, viewFor, viewOf } from "../line/line_bytes.ts";
import { OBSERVED_AT_CHARS } from "../../event/line_layout.ts";
import { SegmentError } from "../storage/errors.ts";

/** Largest time value of a Date (ECMA-262, "Time Values and Time Range"). */
const DATE_MS_MAX = 8.64e15;

/** One value per row: bytes [starts[row], ends[row]). */
export interface ColumnValues {
  bytes: Buffer;
  view: DataView;
  /** ABSENT for a row without a value. Rows with the same dictionary value have the same offset. */
  starts: Uint32Array;
  ends: Uint32Array;
}

export const ABSENT = 0xffff_ffff;

const INT64_BYTES = 8;
const NO_BYTES = new ArrayBuffer(0);

/**
 * Locates the values that `hyparquet` decoded, which are views of one page.
 * @param valueBytesMax maximum size of a value.
 * @throws {SegmentError}
 */
export function columnValues(
  decoded: DecodedArray,
  rows: number,
  valueBytesMax: number,
): ColumnValues {
  if (decoded.length !== rows) throw new SegmentError(`has ${decoded.length} values`);
  const first: unknown = Array.prototype.find.call(decoded, (value) => value !== null);
  if (typeof first === "bigint") return integerValues(decoded as ArrayLike<bigint>);
  const bytes = Buffer.from(first instanceof Uint8Array ? first.buffer as ArrayBuffer : NO_BYTES);
  const starts = new Uint32Array(rows);
  const ends = new Uint32Array(rows);
  for (let row = 0; row < rows; row++) {
    const value: unknown = decoded[row];
    if (value === null) {
      starts[row] = ends[row] = ABSENT;
      continue;
    }
    // A dictionary index out of range yields undefined.
    if (!(value instanceof Uint8Array) || value.length > valueBytesMax) {
      throw new SegmentError(`has an invalid value in row ${row}`);
    }
    starts[row] = value.byteOffset;
    ends[row] = value.byteOffset + value.length;
  }
  return { bytes, view: viewFor(bytes), starts, ends };
}

/** Stores a run of equal integers once. */
function integerValues(decoded: ArrayLike<bigint>): ColumnValues {
  const bytes = Buffer.alloc(decoded.length * INT64_BYTES);
  const starts = new Uint32Array(decoded.length);
  let at = -INT64_BYTES;
  for (let row = 0; row < decoded.length; row++) {
    const value = decoded[row];
    if (value === undefined) throw new SegmentError(`has an invalid value in row ${row}`);
    if (row === 0 || value !== decoded[row - 1]) bytes.writeBigInt64LE(value, at += INT64_BYTES);
    starts[row] = at;
  }
  return { bytes, view: viewFor(bytes), starts, ends: starts.map((start) => start + INT64_BYTES) };
}

export function textAt({ bytes, starts, ends }: ColumnValues, row: number): string {
  return bytes.toString("utf8", starts[row]!, ends[row]!);
}

export function bytesAt({ bytes, starts, ends }: ColumnValues, row: number): Uint8Array {
  return viewOf(bytes, starts[row]!, ends[row]!);
}

export function hexAt({ bytes, starts, ends }: ColumnValues, row: number): string {
  return bytes.toString("hex", starts[row]!, ends[row]!);
}

export function uuidAt({ bytes, starts }: ColumnValues, row: number): string {
  return uuidText(bytes, starts[row]!);
}

/** Returns an `observed_at` as formatted in lines. @throws {SegmentError} if it is out of range. */
export function timeAt({ bytes, starts }: ColumnValues, row: number): Buffer {
  const timeMs = Number(bytes.readBigInt64LE(starts[row]!));
  const spelled = Math.abs(timeMs) <= DATE_MS_MAX ? formatTimestamp(timeMs) : "";
  if (spelled.length !== OBSERVED_AT_CHARS) {
    throw new SegmentError(`observed_at: ${timeMs} ms is outside the years 0000 to 9999`);
  }
  return Buffer.from(spelled);
}

export function isValueAt(
  { bytes, starts, ends }: ColumnValues,
  row: number,
  value: Uint8Array,
): boolean {
  return sameBytes(bytes, starts[row]!, ends[row]!, value);
}

/** Creates a column with the same value in all rows. */
export function constantValues(value: Uint8Array, rows: number): ColumnValues {
  const bytes = Buffer.from(value);
  const ends = new Uint32Array(rows).fill(value.length);
  return { bytes, view: viewFor(bytes), starts: new Uint32Array(rows), ends };
}
