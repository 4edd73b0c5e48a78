/**
 * What a stored event line has beside the values of its members. A line is one JSON object, without
 * spaces and in this order (docs/format.md):
 *
 *   {"event_id":"<36>","source":"<name>","stream":"<name>","record_key":<string>,"kind":<string>
 *   [,"occurred_at":"<time>"],"observed_at":"<24>","payload":<JSON>,"content_hash":"<64>"
 *   ,"batch_id":<string>,"event_hash":"<64>"}
 */
import { Buffer } from "node:buffer";
import { HASH_CHARS, UUID_CHARS } from "./line_bytes.ts";

// What stands before the value that each is named for.
export const OPENING: Buffer = Buffer.from('{"event_id":"');
export const SOURCE: Buffer = Buffer.from('","source":"');
export const STREAM: Buffer = Buffer.from('","stream":"');
export const RECORD_KEY: Buffer = Buffer.from('","record_key":"');
export const KIND: Buffer = Buffer.from('","kind":"');
export const OCCURRED_AT: Buffer = Buffer.from('","occurred_at":"');
export const OBSERVED_AT: Buffer = Buffer.from('","observed_at":"');
export const PAYLOAD: Buffer = Buffer.from('","payload":');
export const CONTENT_HASH: Buffer = Buffer.from(',"content_hash":"');
export const BATCH_ID: Buffer = Buffer.from('","batch_id":"');
export const EVENT_HASH: Buffer = Buffer.from('","event_hash":"');
export const CLOSING: Buffer = Buffer.from('"}');

/** `YYYY-MM-DDTHH:MM:SS.mmmZ` */
export const OBSERVED_AT_CHARS = 24;

/** Bytes of a line, LF included, beside the values of its strings and payload. */
export const LINE_FIXED_BYTES: number = [
  ...[OPENING, SOURCE, STREAM, RECORD_KEY, KIND, OCCURRED_AT, OBSERVED_AT, PAYLOAD],
  ...[CONTENT_HASH, BATCH_ID, EVENT_HASH, CLOSING],
].reduce((sum, piece) => sum + piece.length, UUID_CHARS + OBSERVED_AT_CHARS + 2 * HASH_CHARS + 1);
