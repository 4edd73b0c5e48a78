/**
 * Reads members from a stored event line (`line_layout.ts`) without parsing it. Names contain no
 * quotes and JSON strings escape them, so the first unescaped quote ends a string.
 */
import { Buffer } from "node:buffer";
import { EVENT_BYTES_MIN } from "../../limits.ts";
import { LF, sameBytes, spelledText, stringEnd, UUID_CHARS, viewOf } from "./line_bytes.ts";
import { KIND, OPENING, RECORD_KEY, SOURCE, STREAM } from "./line_layout.ts";

/** Exact-match filter on an event's members; an absent property matches every event. */
export interface EventFilter {
  source?: string;
  stream?: string;
  recordKey?: string;
  kind?: string;
}

/** Whether the stored line at `offset` in `bytes` passes a filter. */
export type LineMatcher = (bytes: Buffer, offset: number) => boolean;

const ID_OFFSET = OPENING.sizeBytes;
const ID_END_OFFSET = ID_OFFSET + UUID_CHARS;
const SOURCE_OFFSET = ID_END_OFFSET + SOURCE.sizeBytes;
/** Follows the value of `kind`, whichever member is next. */
const AFTER_KIND = Buffer.from('","');

/** Offset of the byte after `{"`: `c` in a commit header line, `e` in an event line. */
const KIND_OFFSET = 2;
const HEADER_KIND = 0x63;

/** Whether the line that starts at `offset` is a commit header, not an event. */
export function isHeaderLine(bytes: Uint8Array, offset: number): boolean {
  return bytes[offset + KIND_OFFSET] === HEADER_KIND;
}

const LF_WORD = 0x0a0a0a0a;
const LOWEST_BITS = 0x01010101;
const HIGHEST_BITS = 0x80808080 | 0;
const LITTLE_ENDIAN = true;
const WORD_BYTES = 4;

/** Returns the end of the event line that starts at `start`, including its LF. It must be valid. */
export function eventLineEnd(lines: DataView, start: number): number {
  return lineEnd(lines, start + EVENT_BYTES_MIN - 1);
}

/**
 * Returns the end of the line that contains `at`, including its LF; the end of `lines` if it has
 * none. Searches word by word with the zero-byte trick (H. Warren, Hacker's Delight, 6-1), since
 * one runtime searches a Buffer byte by byte, which would double the time of a replay.
 */
export function lineEnd(lines: DataView, at: number): number {
  const wordsEnd = lines.byteLength - 2 * WORD_BYTES;
  for (; at <= wordsEnd; at += 2 * WORD_BYTES) {
    const first = lines.getInt32(at, LITTLE_ENDIAN) ^ LF_WORD;
    const second = lines.getInt32(at + WORD_BYTES, LITTLE_ENDIAN) ^ LF_WORD;
    const zeros = (first - LOWEST_BITS | 0) & ~first | (second - LOWEST_BITS | 0) & ~second;
    if ((zeros & HIGHEST_BITS) !== 0) break;
  }
  while (at < lines.byteLength && lines.getUint8(at) !== LF) at += 1;
  return Math.min(at + 1, lines.byteLength);
}

/** Returns the event id in the line that starts at `offset`. */
export function lineEventId(bytes: Buffer, offset: number): string {
  return bytes.toString("latin1", offset + ID_OFFSET, offset + ID_END_OFFSET);
}

/** Returns the source and stream in the line that starts at `offset`. */
export function lineSourceAndStream(
  bytes: Buffer,
  offset: number,
): { source: string; stream: string } {
  const sourceStart = offset + SOURCE_OFFSET;
  const sourceEnd = bytes.indexOf(STREAM.bytes, sourceStart);
  const streamStart = sourceEnd + STREAM.sizeBytes;
  const streamEnd = bytes.indexOf(RECORD_KEY.bytes, streamStart);
  return {
    source: bytes.toString("latin1", sourceStart, sourceEnd),
    stream: bytes.toString("latin1", streamStart, streamEnd),
  };
}

/** Returns the record key in the line that starts at `offset`, still escaped. */
export function lineRecordKey(bytes: Buffer, offset: number): Uint8Array {
  const limit = bytes.length;
  const streamStart = stringEnd(bytes, offset + SOURCE_OFFSET, limit) + STREAM.sizeBytes;
  const start = stringEnd(bytes, streamStart, limit) + RECORD_KEY.sizeBytes;
  return viewOf(bytes, start, stringEnd(bytes, start, limit));
}

/** Compiles a filter; returns null if it matches every line. */
export function lineMatcher(filter: EventFilter): LineMatcher | null {
  const { source, stream, recordKey, kind } = filter;
  const steps = [
    memberStep(source, STREAM.bytes),
    memberStep(stream, RECORD_KEY.bytes),
    memberStep(recordKey, KIND.bytes),
    memberStep(kind, AFTER_KIND),
  ];
  while (steps.at(-1)?.wanted === null) steps.pop();
  if (steps.length === 0) return null;
  return (bytes, offset) => {
    let position = offset + SOURCE_OFFSET;
    for (const { wanted, end } of steps) {
      if (wanted === null) {
        position = bytes.indexOf(end, position) + end.length;
      } else {
        const wantedEnd = position + wanted.length;
        if (!sameBytes(bytes, position, wantedEnd, wanted)) return false;
        position = wantedEnd;
      }
    }
    return true;
  };
}

/** Returns the expected bytes of a value and the next name; `wanted` is null for any value. */
function memberStep(
  value: string | undefined,
  end: Buffer,
): { wanted: Buffer | null; end: Buffer } {
  if (value === undefined) return { wanted: null, end };
  return { wanted: Buffer.concat([spelledText(value), end]), end };
}

/** Returns the start of the first line whose event id is after `after`, or the end of `lines`. */
export function firstLineAfter(lines: Buffer, after: string): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    // No line starts in (start, middle].
    const start = middle === 0 ? 0 : lines.lastIndexOf(LF, middle - 1) + 1;
    if (lineEventId(lines, start) <= after) low = lines.indexOf(LF, middle) + 1;
    else high = start;
  }
  return low;
}
