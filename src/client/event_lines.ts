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

const OPENING = '"events":[';
/** A page or record with events opens their array within this many bytes. */
const OPENING_BYTES_MAX = 64;
const SEPARATOR = ',{"event_id":"';
const EVENT_START = /{"event_id":"([^"]{36})","source":"[^"]*","stream":"[^"]*","record_key":"/y;
const [BLANK, LF] = [0x20, 0x0a];

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
  const opening = bytes.subarray(0, OPENING_BYTES_MAX).indexOf(OPENING);
  if (opening < 0) return parseJsonText(bytes.toString());
  const start = opening + OPENING.length;
  const end = bytes.lastIndexOf("]");
  const members = parseJsonText(bytes.toString("utf8", 0, start) + bytes.toString("utf8", end));
  return Object.assign(members, { events: split(bytes, start, end) });
}

/** Splits events that are separated by commas, and by blanks that the service may send. */
function split(bytes: Buffer, start: number, end: number): EventLine[] {
  // Strings are searched faster than bytes. This one has a character for each byte.
  const text = bytes.toString("latin1", 0, end);
  const events: EventLine[] = [];
  let size = 0;
  while (bytes[start] === BLANK) start++;
  for (let next = start; start < end; start = next + 1) {
    const event_id = eventIdAt(text, start);
    if (event_id === undefined) throw new ProtocolError("a page has an unknown event");
    do {
      next = text.indexOf(SEPARATOR, next + 1);
    } while (next >= 0 && eventIdAt(text, next + 1) === undefined);
    if (next < 0) next = end;
    let last = next;
    while (bytes[last - 1] === BLANK) last--;
    bytes.copyWithin(size, start, last);
    const lineEnd = size + last - start + 1;
    bytes[lineEnd - 1] = LF;
    events.push({ event_id, lines: bytes, start: size, end: lineEnd });
    size = lineEnd;
  }
  return events;
}

/** Returns the id of the event that starts at an offset; undefined if none does. */
function eventIdAt(text: string, at: number): string | undefined {
  EVENT_START.lastIndex = at;
  return EVENT_START.exec(text)?.[1];
}
