/**
 * Decodes a request body, which has a declared length (RFC 9112 section 6.2) or is chunked (section
 * 7.1), without copying it.
 */
import type { Buffer } from "node:buffer";
import { HEADER_BYTES_MAX } from "../limits.ts";
import { MalformedRequestError } from "./message.ts";

const CR = 0x0d;
const LF = 0x0a;
/** A chunk size and an optional extension; the extension is ignored. */
const CHUNK_LINE = /^(0*[0-9A-Fa-f]{1,12})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?$/;
const TRAILER_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;
/** Digits of a chunk size that do not count as ignored bytes. Some senders add leading zeros. */
const PADDED_DIGITS_MAX = 16;
const CRLF_BYTES = 2;

type Expected = "size" | "content" | "content-end" | "trailer" | "nothing";

export class BodyDecoder {
  readonly #isChunked: boolean;
  #expected: Expected;
  /** Remaining content of the body or of the current chunk. */
  #leftBytes: number;
  /** Received part of the current line. */
  #line = "";
  /** Bytes of ignored extensions and trailers, at most HEADER_BYTES_MAX. */
  #droppedBytes = 0;

  /** @param bodyBytes Declared length; null for a chunked body. */
  constructor(bodyBytes: number | null) {
    this.#isChunked = bodyBytes === null;
    this.#leftBytes = bodyBytes ?? 0;
    if (bodyBytes === null) this.#expected = "size";
    else this.#expected = bodyBytes === 0 ? "nothing" : "content";
  }

  get isComplete(): boolean {
    return this.#expected === "nothing";
  }

  /**
   * Decodes `bytes` up to the end of the body or the buffer, and appends their content to `pieces`.
   * @returns the offset where it stopped.
   * @throws {MalformedRequestError}
   */
  decode(bytes: Buffer, pieces: Buffer[]): number {
    let at = 0;
    while (at < bytes.length && !this.isComplete) {
      at = this.#expected === "content"
        ? this.#takeContent(bytes, at, pieces)
        : this.#takeLine(bytes, at);
    }
    return at;
  }

  #takeContent(bytes: Buffer, start: number, pieces: Buffer[]): number {
    const end = Math.min(bytes.length, start + this.#leftBytes);
    pieces.push(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
    this.#leftBytes -= end - start;
    if (this.#leftBytes === 0) this.#expected = this.#isChunked ? "content-end" : "nothing";
    return end;
  }

  #takeLine(bytes: Buffer, start: number): number {
    const lineFeed = bytes.indexOf(LF, start);
    const end = lineFeed < 0 ? bytes.length : lineFeed;
    if (this.#line.length + end - start > HEADER_BYTES_MAX) throw malformed();
    this.#line += bytes.toString("latin1", start, end);
    if (lineFeed < 0) return end;
    const line = this.#line;
    this.#line = "";
    if (line.charCodeAt(line.length - 1) !== CR) throw malformed();
    this.#endLine(line.slice(0, -1));
    return end + 1;
  }

  #endLine(line: string): void {
    if (this.#expected === "size") return this.#beginChunk(line);
    if (line === "") {
      this.#expected = this.#expected === "content-end" ? "size" : "nothing";
      return;
    }
    if (this.#expected === "content-end" || !TRAILER_LINE.test(line)) throw malformed();
    this.#drop(line.length);
  }

  #beginChunk(line: string): void {
    const [, digits] = CHUNK_LINE.exec(line) ?? [];
    if (digits === undefined) throw malformed();
    this.#drop(line.length - Math.min(digits.length, PADDED_DIGITS_MAX));
    this.#leftBytes = parseInt(digits, 16);
    this.#expected = this.#leftBytes === 0 ? "trailer" : "content";
  }

  #drop(sizeBytes: number): void {
    if (sizeBytes === 0) return;
    this.#droppedBytes += sizeBytes + CRLF_BYTES;
    if (this.#droppedBytes > HEADER_BYTES_MAX) throw malformed();
  }
}

function malformed(): MalformedRequestError {
  return new MalformedRequestError("the request body has malformed chunked encoding");
}
