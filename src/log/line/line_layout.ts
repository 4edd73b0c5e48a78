/**
 * The constant parts of a stored event line, a JSON object without whitespace whose members are in
 * this order (docs/format.md):
 *
 *   {"event_id":"<36>","source":"<name>","stream":"<name>","record_key":<string>,"kind":<string>
 *   [,"occurred_at":"<time>"],"observed_at":"<24>","payload":<JSON>,"content_hash":"<64>"
 *   ,"batch_id":<string>,"event_hash":"<64>"}
 */
import { HASH_CHARS, type Piece, pieceOf, UUID_CHARS } from "./line_bytes.ts";

// Each part precedes the value it is named after.
export const OPENING: Piece = pieceOf('{"event_id":"');
export const SOURCE: Piece = pieceOf('","source":"');
export const STREAM: Piece = pieceOf('","stream":"');
export const RECORD_KEY: Piece = pieceOf('","record_key":"');
export const KIND: Piece = pieceOf('","kind":"');
export const OCCURRED_AT: Piece = pieceOf('","occurred_at":"');
export const OBSERVED_AT: Piece = pieceOf('","observed_at":"');
export const PAYLOAD: Piece = pieceOf('","payload":');
export const CONTENT_HASH: Piece = pieceOf(',"content_hash":"');
export const BATCH_ID: Piece = pieceOf('","batch_id":"');
export const EVENT_HASH: Piece = pieceOf('","event_hash":"');
export const CLOSING: Piece = pieceOf('"}');

/** `YYYY-MM-DDTHH:MM:SS.mmmZ` */
export const OBSERVED_AT_CHARS = 24;

/** Size of a line with its LF, excluding the values of variable-length members. */
export const LINE_FIXED_BYTES: number = [
  ...[OPENING, SOURCE, STREAM, RECORD_KEY, KIND, OCCURRED_AT, OBSERVED_AT, PAYLOAD],
  ...[CONTENT_HASH, BATCH_ID, EVENT_HASH, CLOSING],
].reduce(
  (sum, piece) => sum + piece.sizeBytes,
  UUID_CHARS + OBSERVED_AT_CHARS + 2 * HASH_CHARS + 1,
);
