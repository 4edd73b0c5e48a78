/**
 * The events of a batch as bytes, ready for the log but for what only the commit knows: the stored
 * lines and the envelopes that are hashed, with places left for ids, time and event hashes. They
 * can be made on another thread (`batch_encoder.ts`); the writer of the log only fills the places.
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
  /** Place of its last event in the batch. */
  lastIndex: number;
}

/** Events with places for what the commit gives them. */
export interface EncodedEvents {
  count: number;
  streams: StreamShare[];
  /** One line for each event, each with its LF. */
  lines: Buffer;
  /** One envelope after the other. */
  envelopes: Buffer;
  /** PLACES numbers for each event: indexes in `lines` and `envelopes`. */
  places: Int32Array;
}

/** Numbers of an event in `EncodedEvents.places`. */
export const PLACES = 5;
export const LINE_OBSERVED_AT = 0;
export const LINE_END = 1;
export const ENVELOPE_ID = 2;
export const ENVELOPE_OBSERVED_AT = 3;
export const ENVELOPE_END = 4;

/** What a line has before its id, and after its hash. */
export const LINE_START = '{"event_id":"';
export const LINE_CLOSE = '"}\n';

/** What is in the places until they are filled. */
export const NO_ID: string = "0".repeat(36);
export const NO_TIME: string = "0".repeat(24);
export const NO_HASH: string = "0".repeat(64);

/** What of them is needed to fill them. */
export interface FillableEvents extends Pick<EncodedEvents, "count" | "places"> {
  lines: Uint8Array;
  envelopes: Uint8Array;
}

/** What is given to the events of a batch. */
export interface FillValues {
  /** One for each event. */
  eventIds: readonly string[];
  /** `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
  observedAt: string;
}

/** What a commit gives to them. */
export interface CommitValues extends FillValues {
  /** Takes in the hash of each event, 64 lowercase hex digits. */
  chain: Pick<HistoryChain, "append">;
}

/**
 * Gives the events from `first` to before `end` their ids and their time, and takes their hashes
 * into the chain and into the lines, which are complete then. All before them have been filled.
 */
export function fillEvents(
  { lines, envelopes, places }: FillableEvents,
  { eventIds, observedAt, chain }: CommitValues,
  first: number,
  end: number,
): void {
  let lineStart = first === 0 ? 0 : places[(first - 1) * PLACES + LINE_END]!;
  let envelopeStart = first === 0 ? 0 : places[(first - 1) * PLACES + ENVELOPE_END]!;
  for (let index = first; index < end; index++) {
    const place = index * PLACES;
    const eventId = eventIds[index]!;
    putAscii(eventId, envelopes, places[place + ENVELOPE_ID]!);
    putAscii(observedAt, envelopes, places[place + ENVELOPE_OBSERVED_AT]!);
    const envelopeEnd = places[place + ENVELOPE_END]!;
    const eventHash = sha256Hex(envelopes.subarray(envelopeStart, envelopeEnd));
    const lineEnd = places[place + LINE_END]!;
    putAscii(eventId, lines, lineStart + LINE_START.length);
    putAscii(observedAt, lines, places[place + LINE_OBSERVED_AT]!);
    putAscii(eventHash, lines, lineEnd - LINE_CLOSE.length - NO_HASH.length);
    chain.append(eventHash);
    lineStart = lineEnd;
    envelopeStart = envelopeEnd;
  }
}
