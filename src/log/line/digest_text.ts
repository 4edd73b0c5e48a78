/**
 * The text that the digest of a batch is of, while it is put together: hashed piece by piece, so
 * that memory is flat.
 */
import { Buffer } from "node:buffer";
import { Sha256Stream } from "../../event/hash.ts";
import {
  copyBytes,
  type Piece,
  putBytes,
  putHex,
  putPiece,
  viewFor,
  viewOf,
} from "./line_bytes.ts";

/** Texts up to here are hashed in one call, longer ones piece by piece. The buffer has twice it. */
const PIECE_BYTES = 64 * 1024;

export class DigestText {
  #bytes: Buffer = Buffer.allocUnsafeSlow(2 * PIECE_BYTES);
  #view = viewFor(this.#bytes);
  #length = 0;
  /** Has what does not fit the buffer any more. */
  readonly #hash = new Sha256Stream();

  /** Makes room for what is put next, `sizeBytes` at the most. */
  reserve(sizeBytes: number): void {
    if (this.#length > PIECE_BYTES) this.#flush();
    if (this.#length + sizeBytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + sizeBytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#view = viewFor(larger);
  }

  /** Appends bytes. */
  put(from: Uint8Array, start = 0, end: number = from.length): void {
    this.#length = putBytes(this.#bytes, this.#length, from, start, end);
  }

  /** Appends the bytes [start, end) of a view, mostly few. */
  putView(from: DataView, start: number, end: number): void {
    copyBytes(from, start, this.#view, this.#length, end - start);
    this.#length += end - start;
  }

  /** Appends a piece. */
  putPiece(piece: Piece): void {
    this.#length = putPiece(this.#view, this.#length, piece);
  }

  /** Appends bytes in lowercase hex. */
  putHex(from: Uint8Array, start: number, sizeBytes: number): void {
    this.#length = putHex(this.#view, this.#length, from, start, sizeBytes);
  }

  /** SHA-256 of the text, 64 lowercase hex digits; the next text begins. */
  finish(): string {
    const digest = this.#hash.end(viewOf(this.#bytes, 0, this.#length));
    this.#length = 0;
    return digest;
  }

  #flush(): void {
    this.#hash.update(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
  }
}
