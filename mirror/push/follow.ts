/**
 * Follows a log and returns events as raw bytes. `EventLogClient` parses events, which would cost
 * more than publishing them.
 */
import { Buffer } from "node:buffer";
import { ProtocolError, unixFetch } from "../../mod.ts";
import { Deadline } from "../../src/client/deadline.ts";
import { chunksOf, readLines } from "../../src/client/response_body.ts";
import { nameOf, Transport } from "../../src/client/transport.ts";
import { CLIENT_LINE_BYTES_MAX } from "../../src/limits.ts";
import { stringEnd } from "../../src/log/line/line_bytes.ts";
import { StoredEvent } from "../../src/log/line/stored_event.ts";

/** A committed event. */
export interface LogEvent {
  eventId: string;
  source: string;
  stream: string;
  /** Source and batch id. Equal for all events in a batch, and different in adjacent batches. */
  batch: string;
  /** The stored line, without LF. */
  data: Buffer;
}

/** A record in a follow response. */
export type LogRecord =
  | { type: "events"; events: LogEvent[]; snapshot_through_event_id: string | null }
  | { type: "caught_up" }
  | { type: "end"; reason: string; detail?: string };

/** How to connect to the service. */
export interface ServiceAddress {
  socket: string;
  token?: string;
  /** Timeout for each response, and for each record up to `caught_up`. */
  readTimeoutMs?: number;
}

/** A service sends a record at least every 5 s. */
export const READ_TIMEOUT_MS = 30_000;

/**
 * Yields the records in one follow response.
 * @throws {ConnectionError} if the connection fails, or a record before `caught_up` is late.
 * @throws {EventLogError} if the service returns an error.
 */
export async function* followLog(
  { socket, token, readTimeoutMs = READ_TIMEOUT_MS }: ServiceAddress,
  after: string | null,
  signal: AbortSignal,
): AsyncGenerator<LogRecord, void> {
  const transport = new Transport(unixFetch(socket), { attemptsMax: 1, ...(token && { token }) });
  const query = { follow: "true", after: after ?? undefined };
  const request = { method: "GET" as const, path: "/v1/events", query };
  const name = nameOf(request);
  const deadline = new Deadline(signal);
  let isLive = false;
  try {
    deadline.start(name, readTimeoutMs);
    const response = await transport.send(request, deadline.signal);
    for await (const line of readLines(chunksOf(name, response), CLIENT_LINE_BYTES_MAX)) {
      // The consumer may take any time.
      deadline.stop();
      const record = parseRecord(Buffer.from(line.buffer, line.byteOffset, line.length));
      yield record;
      isLive ||= record.type === "caught_up";
      if (!isLive) deadline.start(name, readTimeoutMs);
    }
  } finally {
    deadline.stop();
  }
}

const EVENTS_RECORD = Buffer.from('{"type":"events"');
const EVENTS_MEMBER = Buffer.from(',"events":[');

/** Parses a line from a follow response. The events' `data` are views of `line`. */
export function parseRecord(line: Buffer): LogRecord {
  if (!line.subarray(0, EVENTS_RECORD.length).equals(EVENTS_RECORD)) {
    return JSON.parse(line.toString());
  }
  const member = line.indexOf(EVENTS_MEMBER);
  const events: LogEvent[] = [];
  const stored = new StoredEvent();
  let at = member + EVENTS_MEMBER.length;
  while (line[at] === OPENING_BRACE) {
    const end = objectEnd(line, at);
    if (!stored.take(line, at, end)) {
      throw new ProtocolError("malformed event in the follow response");
    }
    events.push(toLogEvent(stored, line.subarray(at, end)));
    at = line[end] === COMMA ? end + 1 : end;
  }
  if (member < 0 || line[at] !== CLOSING_BRACKET) {
    throw new ProtocolError("malformed events record in the follow response");
  }
  const rest = JSON.parse(`{${line.toString("latin1", at + 2)}`);
  return { ...rest, type: "events", events };
}

function toLogEvent(stored: StoredEvent, data: Buffer): LogEvent {
  const { bytes, sourceStart, sourceEnd, streamStart, streamEnd } = stored;
  const source = bytes.toString("latin1", sourceStart, sourceEnd);
  return {
    eventId: stored.eventId,
    source,
    stream: bytes.toString("latin1", streamStart, streamEnd),
    batch: `${source} ${bytes.toString("latin1", stored.batchIdStart, stored.batchIdEnd)}`,
    data,
  };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/** Returns the end of the JSON object at `start`. @throws {ProtocolError} if it is unterminated. */
function objectEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at + 1, bytes.length);
      if (at < 0) break;
    } else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      depth++;
    } else if ((byte === CLOSING_BRACE || byte === CLOSING_BRACKET) && --depth === 0) {
      return at + 1;
    }
  }
  throw new ProtocolError("the follow response contains an unterminated event");
}
