/**
 * The events of a replay page or follow record as stored, one line each, without parsing them.
 *
 * The service sends stored lines, whose members have a fixed order (docs/format.md). That order is
 * not the order of RFC 8785, in which payloads are stored, so no payload contains the start of an
 * event, even if it contains an event: between `source` and `record_key`, one of both is misplaced.
 */
import { Buffer } from "node:buffer";
import { parseJsonText } from "../event/json/strict_json.ts";
import { ProtocolError } from "./errors.ts";

const OPENING = Buffer.from('"events":[');
const SEPARATOR = Buffer.from(',{"event_id":"');
const SOURCE = Buffer.from('","source":"');
const STREAM = Buffer.from('","stream":"');
const RECORD_KEY = Buffer.from('","record_key":"');
const ID_OFFSET = SEPARATOR.length - 1;
const ID_CHARS = 36;
/** Size of the smallest stored event, and so the least distance between separators. */
const EVENT_BYTES_MIN = 330;
const [BLANK, LF, QUOTE] = [0x20, 0x0a, 0x22];

/** Distance by which a search advances from each byte (Horspool's algorithm). */
const STEPS = new Uint8Array(0x100).fill(SEPARATOR.length);
SEPARATOR.subarray(0, -1).forEach((byte, at) => STEPS[byte] = SEPARATOR.length - 1 - at);

/** Stands in for an event in a page or record. */
export interface EventLine {
  event_id: string;
  /** The lines of all events, one after the other, and where this one is, with its LF. */
  lines: Buffer;
  start: number;
  end: number;
}

/** Returns the lines of events that are consecutive in a page. */
export function linesOf(events: readonly EventLine[]): Buffer {
  const [first, last] = [events[0], events.at(-1)];
  return first === undefined ? Buffer.alloc(0) : first.lines.subarray(first.start, last!.end);
}

/**
 * Parses a document or record, except that `events`, if it has any, is an array of `EventLine`.
 * @param body is overwritten by the lines.
 */
export function parseLines(body: Uint8Array): unknown {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  const opening = bytes.subarray(0, EVENT_BYTES_MIN).indexOf(OPENING);
  if (opening < 0) return parseJsonText(bytes.toString());
  const start = opening + OPENING.length;
  const end = bytes.lastIndexOf("]");
  const members = parseJsonText(bytes.toString("utf8", 0, start) + bytes.toString("utf8", end));
  return Object.assign(members, { events: split(bytes, start, end) });
}

/** Splits events that are separated by commas, and by blanks that the service may send. */
function split(bytes: Buffer, start: number, end: number): EventLine[] {
  const events: EventLine[] = [];
  let size = 0;
  while (bytes[start] === BLANK) start++;
  for (let next = start; start < end; start = next + 1) {
    if (!startsEvent(bytes, start - 1)) throw new ProtocolError("a page has an unknown event");
    next = separatorAfter(bytes, start, end);
    let last = next;
    while (bytes[last - 1] === BLANK) last--;
    const event_id = bytes.toString("latin1", start + ID_OFFSET, start + ID_OFFSET + ID_CHARS);
    bytes.copyWithin(size, start, last);
    const lineEnd = size + last - start + 1;
    bytes[lineEnd - 1] = LF;
    events.push({ event_id, lines: bytes, start: size, end: lineEnd });
    size = lineEnd;
  }
  return events;
}

/** Returns the offset of the comma after the event at `start`; `end` if it is the last one. */
function separatorAfter(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start + EVENT_BYTES_MIN; at < end; at += STEPS[bytes[at]!]!) {
    const from = at - SEPARATOR.length + 1;
    if (bytes[at] === QUOTE && startsEvent(bytes, from)) return from;
  }
  return end;
}

/** Whether an event starts after the byte at `at`, which is a comma or precedes the first event. */
function startsEvent(bytes: Uint8Array, at: number): boolean {
  if (!has(bytes, at + 1, SEPARATOR, 1)) return false;
  const source = at + SEPARATOR.length + ID_CHARS;
  if (!has(bytes, source, SOURCE)) return false;
  const stream = bytes.indexOf(QUOTE, source + SOURCE.length);
  if (!has(bytes, stream, STREAM)) return false;
  return has(bytes, bytes.indexOf(QUOTE, stream + STREAM.length), RECORD_KEY);
}

/** Whether the bytes at an offset are those of `expected` from `skipped` on. */
function has(bytes: Uint8Array, at: number, expected: Uint8Array, skipped = 0): boolean {
  for (let index = skipped; index < expected.length; index++) {
    if (bytes[at + index - skipped] !== expected[index]) return false;
  }
  return true;
}
