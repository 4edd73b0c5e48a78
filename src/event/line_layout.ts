/**
 * The constant parts of a stored event line, a JSON object without whitespace whose members are in
 * this order (docs/format.md):
 *
 *   {"event_id":"<36>","source":"<name>","stream":"<name>","record_key":<string>,"kind":<string>
 *   [,"occurred_at":"<time>"],"observed_at":"<24>","payload":<JSON>,"content_hash":"<64>"
 *   ,"batch_id":<string>,"event_hash":"<64>"}
 */
import { Buffer } from "node:buffer";

/** Bytes that copies may read past the end of a piece. */
const PADDING_BYTES = 4;

/** Constant bytes that are copied or compared often. */
export interface Piece {
  bytes: Buffer;
  /** Padded for word-wise copies. */
  view: DataView;
  sizeBytes: number;
}

/** Creates a piece from a copy of bytes or from a string in UTF-8. */
export function pieceOf(content: Uint8Array | string): Piece {
  const copied = Buffer.from(content);
  const sizeBytes = copied.length;
  const padded = Buffer.concat([copied], sizeBytes + PADDING_BYTES);
  const view = new DataView(padded.buffer, padded.byteOffset, padded.length);
  return { bytes: padded.subarray(0, sizeBytes), view, sizeBytes };
}

export const UUID_CHARS = 36;
export const HASH_CHARS = 64;
/** `YYYY-MM-DDTHH:MM:SS.mmmZ` */
export const OBSERVED_AT_CHARS = 24;

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

/** Size of a line with its LF, excluding the values of variable-length members. */
export const LINE_FIXED_BYTES: number = [
  ...[OPENING, SOURCE, STREAM, RECORD_KEY, KIND, OCCURRED_AT, OBSERVED_AT, PAYLOAD],
  ...[CONTENT_HASH, BATCH_ID, EVENT_HASH, CLOSING],
].reduce(
  (sum, piece) => sum + piece.sizeBytes,
  UUID_CHARS + OBSERVED_AT_CHARS + 2 * HASH_CHARS + 1,
);
