/**
 * Reads members from a stored event line (`line_layout.ts`) without parsing it. Names contain no
 * quotes and JSON strings escape them, so the first unescaped quote ends a string.
 */
import { Buffer } from "node:buffer";
import { startsWith } from "../../event/byte_writer.ts";
import { KIND, OPENING, RECORD_KEY, SOURCE, STREAM, UUID_CHARS } from "../../event/line_layout.ts";
import { LF, spelledText, stringEnd, viewOf } from "./line_bytes.ts";

/** Exact-match filter on an event's members; undefined matches every event. */
export interface EventFilter {
  source?: string | undefined;
  stream?: string | undefined;
  recordKey?: string | undefined;
  kind?: string | undefined;
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

/** Returns the event id in the line that starts at `offset`. */
export function lineEventId(bytes: Buffer, offset: number): string {
  return bytes.toString("latin1", offset + ID_OFFSET, offset + ID_END_OFFSET);
}

/** Returns the record key in the line that starts at `offset`, still escaped. */
export function lineRecordKey(bytes: Buffer, offset: number): Uint8Array {
  const limit = bytes.length;
  const streamStart = stringEnd(bytes, offset + SOURCE_OFFSET, limit) + STREAM.sizeBytes;
  const start = stringEnd(bytes, streamStart, limit) + RECORD_KEY.sizeBytes;
  return viewOf(bytes, start, stringEnd(bytes, start, limit));
}

/** Returns source, stream, record key and kind, still escaped, as latin1. */
export function lineMembers(bytes: Buffer, offset: number): [string, string, string, string] {
  let start = offset + SOURCE_OFFSET;
  return [STREAM, RECORD_KEY, KIND, KIND].map(({ sizeBytes }) => {
    const end = stringEnd(bytes, start, bytes.length);
    const member = bytes.toString("latin1", start, end);
    start = end + sizeBytes;
    return member;
  }) as [string, string, string, string];
}

/** Compiles a filter; returns null if it matches every line. */
export function lineMatcher(filter: EventFilter): LineMatcher | null {
  const { source, stream, recordKey, kind } = filter;
  /** Each value, and what follows it. */
  const members: [value: string | undefined, end: Buffer][] = [
    [source, STREAM.bytes],
    [stream, RECORD_KEY.bytes],
    [recordKey, KIND.bytes],
    [kind, AFTER_KIND],
  ];
  const steps = members.map(([value, end]) => {
    return { wanted: value === undefined ? null : Buffer.concat([spelledText(value), end]), end };
  });
  while (steps.at(-1)?.wanted === null) steps.pop();
  if (steps.length === 0) return null;
  return (bytes, offset) => {
    let position = offset + SOURCE_OFFSET;
    for (const { wanted, end } of steps) {
      if (wanted === null) {
        position = bytes.indexOf(end, position) + end.length;
      } else {
        if (!startsWith(bytes, position, wanted)) return false;
        position += wanted.length;
      }
    }
    return true;
  };
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
