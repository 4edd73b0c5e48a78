/**
 * The events of a prepared batch as bytes: the stored lines, and the envelopes that are hashed,
 * both with room for what only the commit knows. `batch_encoder.ts` lays them out, possibly on
 * another thread; the log writer stamps them with ids, time and hashes.
 *
 * Line: the members in the order of storage, then LF. Envelope: RFC 8785, everything of the event
 * but the payload and the event hash.
 */
import type { Buffer } from "node:buffer";
import { putAscii } from "./byte_writer.ts";
import type { HistoryChain } from "./chain.ts";
import { sha256Hex } from "./hash.ts";

/** What a batch adds to one stream. */
export interface StreamShare {
  stream: string;
  events: number;
  /** Index of its last event in the batch. */
  lastIndex: number;
}

/** Events laid out to be stamped. */
export interface EncodedEvents {
  count: number;
  streams: StreamShare[];
  /** One line for each event, each with its LF. */
  lines: Buffer;
  /** One envelope after the other. */
  envelopes: Buffer;
  /** OFFSETS numbers for each event: indexes in `lines` and `envelopes`. */
  offsets: Int32Array;
}

/** Numbers of an event in `EncodedEvents.offsets`. */
export const OFFSETS = 5;
export const LINE_OBSERVED_AT = 0;
export const LINE_END = 1;
export const ENVELOPE_ID = 2;
export const ENVELOPE_OBSERVED_AT = 3;
export const ENVELOPE_END = 4;

/** What a line has before its id, and after its hash. */
export const LINE_START = '{"event_id":"';
export const LINE_CLOSE = '"}\n';

/** Placeholders that stamping overwrites. */
export const NO_ID: string = "0".repeat(36);
export const NO_TIME: string = "0".repeat(24);
export const NO_HASH: string = "0".repeat(64);

/** What a commit gives to the events of a batch. */
export interface Stamp {
  /** One for each event. */
  eventIds: readonly string[];
  /** `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
  observedAt: string;
  /** Takes in the hash of each event. */
  chain: HistoryChain;
}

/**
 * Stamps the events from `first` to before `end` with ids, time and hashes, which completes their
 * lines. All before them have been stamped.
 */
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
