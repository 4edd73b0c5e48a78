/**
 * Finds only the end of an HTTP/1.1 response, because a load generator must cost less than the
 * server that it measures. It handles one response at a time, counts the bytes of the body and
 * keeps only the last of them.
 */
import { Buffer } from "node:buffer";

/** Large enough for a receipt, or for the last members of a replay page. */
const KEPT_BYTES_MAX = 1024;

const HEAD_BYTES_MAX = 16 * 1024;
const HEAD_END = Buffer.from("\r\n\r\n");
const LF = 10;
const NOTHING = Buffer.alloc(0);

export interface RawResponse {
  status: number;
  bodyBytes: number;
  /** The last bytes of the body, at most 1 KiB. */
  bodyEnd: Buffer;
}

type Part = "head" | "body" | "chunk-size" | "chunk" | "chunk-end" | "trailer";

export class ResponseParser {
  #part: Part = "head";
  /** An incomplete head or line. */
  #pending: Buffer = NOTHING;
  #status = 0;
  #bodyBytes = 0;
  #remainingBytes = 0;
  #bodyEnd: Buffer = NOTHING;

  /** Processes data from the socket. @returns the response once it is complete; null before. */
  push(data: Buffer): RawResponse | null {
    let rest = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    this.#pending = NOTHING;
    while (true) {
      const used = this.#step(rest);
      if (used === null) {
        this.#pending = Buffer.from(rest);
        return null;
      }
      rest = rest.subarray(used);
      if (this.#isComplete()) return this.#finish(rest);
      if (rest.length === 0) return null;
    }
  }

  /** Consumes the next part. @returns its size; null if it is incomplete. */
  #step(data: Buffer): number | null {
    switch (this.#part) {
      case "head":
        return this.#takeHead(data);
      case "body":
      case "chunk":
        return this.#takeBody(data);
      default:
        return this.#takeLine(data);
    }
  }

  #takeHead(data: Buffer): number | null {
    const end = data.indexOf(HEAD_END);
    if (end === -1) {
      if (data.length > HEAD_BYTES_MAX) throw new Error("response head is too long");
      return null;
    }
    const head = data.toString("latin1", 0, end);
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *([0-9]+)/i.exec(head);
    if (length !== null) {
      this.#part = "body";
      this.#remainingBytes = Number(length[1]);
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#part = "chunk-size";
    } else {
      throw new Error(`the response has no length: ${head}`);
    }
    return end + HEAD_END.length;
  }

  #takeBody(data: Buffer): number {
    const taken = Math.min(data.length, this.#remainingBytes);
    this.#keep(data.subarray(0, taken));
    this.#bodyBytes += taken;
    this.#remainingBytes -= taken;
    if (this.#remainingBytes === 0 && this.#part === "chunk") this.#part = "chunk-end";
    return taken;
  }

  #takeLine(data: Buffer): number | null {
    const end = data.indexOf(LF);
    if (end === -1) return null;
    if (this.#part === "chunk-end") {
      this.#part = "chunk-size";
    } else if (this.#part === "chunk-size") {
      this.#remainingBytes = parseInt(data.toString("latin1", 0, end), 16);
      this.#part = this.#remainingBytes === 0 ? "trailer" : "chunk";
    } else if (end <= 1) {
      // The empty line after the trailer. Nothing remains, so the response is complete.
      this.#part = "body";
    }
    return end + 1;
  }

  #keep(data: Buffer): void {
    const isEnough = data.length >= KEPT_BYTES_MAX;
    const kept = isEnough
      ? Buffer.from(data.subarray(-KEPT_BYTES_MAX))
      : Buffer.concat([this.#bodyEnd, data]);
    this.#bodyEnd = kept.subarray(-KEPT_BYTES_MAX);
  }

  #isComplete(): boolean {
    return this.#part === "body" && this.#remainingBytes === 0;
  }

  #finish(rest: Buffer): RawResponse {
    if (rest.length > 0) throw new Error("unexpected data after the response");
    const response = {
      status: this.#status,
      bodyBytes: this.#bodyBytes,
      bodyEnd: this.#bodyEnd,
    };
    this.#part = "head";
    this.#bodyBytes = 0;
    this.#bodyEnd = NOTHING;
    return response;
  }
}
