/**
 * The encoded events in a prepared batch: stored lines (all members, then LF) and hashed envelopes
 * (RFC 8785, without payload and event hash). `batch_encoder.ts` leaves placeholders, which the log
 * writer overwrites with ids, time and hashes.
 */
import type { Buffer } from "node:buffer";
import { putAscii } from "./byte_writer.ts";
import type { HistoryChain } from "./chain.ts";
import { sha256Hex } from "./hash.ts";

/** The events in a batch that belong to one stream. */
export interface StreamShare {
  stream: string;
  events: number;
  /** Index in the batch of the stream's last event. */
  lastIndex: number;
}

export interface EncodedEvents {
  count: number;
  streams: StreamShare[];
  /** One line per event, including its LF. */
  lines: Buffer;
  envelopes: Buffer;
  /** OFFSETS integers per event: offsets in `lines` and `envelopes`. */
  offsets: Int32Array;
}

/** Integers per event in `EncodedEvents.offsets`, and the index of each. */
export const OFFSETS = 5;
export const LINE_OBSERVED_AT = 0;
export const LINE_END = 1;
export const ENVELOPE_ID = 2;
export const ENVELOPE_OBSERVED_AT = 3;
export const ENVELOPE_END = 4;

/** The parts of a line before its id and after its hash. */
export const LINE_START = '{"event_id":"';
export const LINE_CLOSE = '"}\n';

/** Placeholders that stamping overwrites. */
export const NO_ID: string = "0".repeat(36);
export const NO_TIME: string = "0".repeat(24);
export const NO_HASH: string = "0".repeat(64);

/** The values with which the events in a batch are stamped. */
export interface Stamp {
  eventIds: readonly string[];
  /** `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
  observedAt: string;
  /** The chain to which the hash of each event is appended. */
  chain: HistoryChain;
}

/** Completes the lines [first, end). All earlier lines must have been stamped. */
export function stampEvents(
  { lines, envelopes, offsets }: EncodedEvents,
  { eventIds, observedAt, chain }: Stamp,
  first: number,
  end: number,
): void {
  let lineStart = first === 0 ? 0 : offsets[(first - 1) * OFFSETS + LINE_END]!;
  let envelopeStart = first === 0 ? 0 : offsets[(first - 1) * OFFSETS + ENVELOPE_END]!;
  for (let index = first; index < end; index++) {
    const offset = index * OFFSETS;
    const eventId = eventIds[index]!;
    putAscii(eventId, envelopes, offsets[offset + ENVELOPE_ID]!);
    putAscii(observedAt, envelopes, offsets[offset + ENVELOPE_OBSERVED_AT]!);
    const envelopeEnd = offsets[offset + ENVELOPE_END]!;
    const eventHash = sha256Hex(envelopes.subarray(envelopeStart, envelopeEnd));
    const lineEnd = offsets[offset + LINE_END]!;
    putAscii(eventId, lines, lineStart + LINE_START.length);
    putAscii(observedAt, lines, offsets[offset + LINE_OBSERVED_AT]!);
    putAscii(eventHash, lines, lineEnd - LINE_CLOSE.length - NO_HASH.length);
    chain.append(eventHash);
    lineStart = lineEnd;
    envelopeStart = envelopeEnd;
  }
}
