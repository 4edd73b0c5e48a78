/**
 * Decodes a request body, which has a declared length (RFC 9112 section 6.2) or is chunked (section
 * 7.1), in the buffer in which it arrived.
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
/** The value of each byte as a lowercase hex digit, or -1. */
const HEX_VALUES = Int8Array.from({ length: 256 }, (_, byte) => {
  return "0123456789abcdef".indexOf(String.fromCharCode(byte));
});
const PLAIN_DIGITS_MAX = 8;

type Expected = "size" | "content" | "content-end" | "trailer" | "nothing";

export class BodyDecoder {
  readonly #isChunked: boolean;
  #expected: Expected;
  /** Remaining content of the body or of the current chunk. */
  #leftBytes: number;
  /** Received part of the current line. */
  #line = "";
  /** Range of the content in the buffer that is being decoded. */
  #contentStart = 0;
  #contentEnd = 0;
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
   * Decodes `bytes` up to the end of the body or the buffer. Moves the content of chunks together,
   * since a piece per chunk would make tiny chunks expensive.
   * @returns the content, and the offset where decoding stopped.
   * @throws {MalformedRequestError}
   */
  decode(bytes: Buffer): { content: Buffer; end: number } {
    let at = 0;
    this.#contentStart = this.#contentEnd = 0;
    while (at < bytes.length && !this.isComplete) {
      if (this.#expected === "content") at = this.#takeContent(bytes, at);
      else {
        const end = this.#line === "" ? this.#takePlainLine(bytes, at) : at;
        at = end > at ? end : this.#takeLine(bytes, at);
      }
    }
    return { content: bytes.subarray(this.#contentStart, this.#contentEnd), end: at };
  }

  #takeContent(bytes: Buffer, start: number): number {
    const end = Math.min(bytes.length, start + this.#leftBytes);
    if (this.#contentEnd === 0) this.#contentStart = this.#contentEnd = start;
    if (end - start === 1) bytes[this.#contentEnd] = bytes[start]!;
    else if (this.#contentEnd < start) bytes.copyWithin(this.#contentEnd, start, end);
    this.#contentEnd += end - start;
    this.#leftBytes -= end - start;
    if (this.#leftBytes === 0) this.#expected = this.#isChunked ? "content-end" : "nothing";
    return end;
  }

  /** Takes a line as most senders write it. @returns its end; `start` if it is another line. */
  #takePlainLine(bytes: Buffer, start: number): number {
    let at = start;
    let sizeBytes = 0;
    if (this.#expected === "size") {
      for (; at < start + PLAIN_DIGITS_MAX; at++) {
        const digit = HEX_VALUES[bytes[at] ?? CR]!;
        if (digit < 0) break;
        sizeBytes = sizeBytes * 16 + digit;
      }
    }
    const isPlain = bytes[at] === CR && bytes[at + 1] === LF &&
      (at > start ? sizeBytes > 0 : this.#expected === "content-end");
    if (!isPlain) return start;
    this.#expected = at > start ? "content" : "size";
    this.#leftBytes = sizeBytes;
    return at + 2;
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
