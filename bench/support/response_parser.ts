/**
 * Finds only the end of an HTTP/1.1 response, because a load generator must cost less than the
 * server that it measures. It handles one response at a time, and keeps the last bytes of the body.
 */
import { Buffer } from "node:buffer";

/** Large enough for a receipt, or for the last members of a replay page. */
const KEPT_BYTES_MAX = 1024;

const HEAD_END = "\r\n\r\n";
/** The end of a chunked body. JSON has no carriage returns, so it occurs nowhere else. */
const CHUNKS_END = Buffer.from("\r\n0\r\n\r\n");
/** What separates two chunks. */
const CHUNK_SIZES = /\r\n[0-9a-f]+\r\n/gi;
const NOTHING = Buffer.alloc(0);

export interface RawResponse {
  status: number;
  /** The last bytes of the body, at most 1 KiB. */
  bodyEnd: Buffer;
}

export class ResponseParser {
  /** An incomplete head. */
  #head: Buffer = NOTHING;
  #status = 0;
  /** Bytes of the body that have not arrived; infinite for chunks, and null before the body. */
  #leftBytes: number | null = null;
  #end: Buffer = NOTHING;

  /** Processes data from the socket. @returns the response once it is complete; null before. */
  push(data: Buffer): RawResponse | null {
    const body = this.#leftBytes === null ? this.#takeHead(data) : data;
    if (body === null) return null;
    this.#leftBytes! -= body.length;
    if (this.#leftBytes! < 0) throw new Error("unexpected data after the response");
    const isEnough = body.length >= KEPT_BYTES_MAX;
    const kept = isEnough
      ? Buffer.from(body.subarray(-KEPT_BYTES_MAX))
      : Buffer.concat([this.#end, body]);
    this.#end = kept.subarray(-KEPT_BYTES_MAX);
    if (this.#leftBytes === 0) return this.#finish(this.#end);
    const isOver = this.#leftBytes === Infinity &&
      this.#end.subarray(-CHUNKS_END.length).equals(CHUNKS_END);
    if (!isOver) return null;
    const text = this.#end.toString("latin1", 0, this.#end.length - CHUNKS_END.length);
    return this.#finish(Buffer.from(text.replace(CHUNK_SIZES, ""), "latin1"));
  }

  /** @returns what follows the head; null if the head is incomplete. */
  #takeHead(data: Buffer): Buffer | null {
    const bytes = this.#head.length === 0 ? data : Buffer.concat([this.#head, data]);
    const end = bytes.indexOf(HEAD_END);
    if (end === -1) {
      this.#head = Buffer.from(bytes);
      return null;
    }
    const head = bytes.toString("latin1", 0, end);
    const length = /\r\ncontent-length: *([0-9]+)/i.exec(head)?.[1];
    const isChunked = /\r\ntransfer-encoding: *chunked/i.test(head);
    if (length === undefined && !isChunked) throw new Error(`the response has no length: ${head}`);
    this.#head = NOTHING;
    this.#status = Number(head.slice(9, 12));
    this.#leftBytes = isChunked ? Infinity : Number(length);
    // The first chunk follows a line break, as the others do.
    return bytes.subarray(isChunked ? end + 2 : end + HEAD_END.length);
  }

  #finish(bodyEnd: Buffer): RawResponse {
    this.#leftBytes = null;
    this.#end = NOTHING;
    return { status: this.#status, bodyEnd };
  }
}
