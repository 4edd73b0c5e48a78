/** Writes a connection's responses: small ones in one write, streams with backpressure. */
import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { HttpResponse } from "./message.ts";
import type { StallWatch } from "./stall_watch.ts";

/** Pieces up to this size are copied into their frame, which costs less than another write. */
const COPIED_PIECE_BYTES_MAX = 8 * 1024;
/** A larger piece is written in parts, each of which the client must accept before the timeout. */
const PART_BYTES_MAX = 256 * 1024;
/** The same in an endless response, whose clients may be many, and slow. */
const ENDLESS_PART_BYTES_MAX = 16 * 1024;
const CRLF = "\r\n";

export class ResponseWriter {
  readonly #socket: Socket;
  /** Times out a client that accepts nothing. */
  readonly #stallWatch: StallWatch;
  #onStall: HttpResponse["onStall"];
  #partBytesMax = PART_BYTES_MAX;
  #isGone = false;
  /** Wakes the waiting writer. */
  #wake: (() => void) | null = null;
  /** Ends the stream that is being written. */
  #endPieces: (() => void) | null = null;

  constructor(socket: Socket, stallWatch: StallWatch) {
    this.#socket = socket;
    this.#stallWatch = stallWatch;
    socket.on("drain", () => this.#wakeWriter());
    socket.on("close", () => {
      this.#isGone = true;
      this.#endPieces?.();
      this.#wakeWriter();
    });
  }

  writeContinue(): void {
    this.#write("HTTP/1.1 100 Continue\r\n\r\n");
  }

  /**
   * Writes a response. Resolves when the socket is writable again; to false if the response was
   * truncated, after which the connection must close.
   */
  write(
    response: HttpResponse,
    keepsAlive: boolean,
    takesChunks: boolean,
  ): boolean | Promise<boolean> {
    const { body } = response;
    this.#onStall = response.onStall;
    if (response.isEndless === true) this.#partBytesMax = ENDLESS_PART_BYTES_MAX;
    if (body === null) return this.#writeWhole(formatHead(response, keepsAlive));
    if (typeof body === "string" || body instanceof Uint8Array) {
      const sizeBytes = Buffer.byteLength(body);
      const head = formatHead(response, keepsAlive, sizeBytes);
      if (sizeBytes <= PART_BYTES_MAX) {
        return this.#writeWhole(typeof body === "string" ? head + body : framed(head, body));
      }
      this.#write(head);
      return this.#writeParts(typeof body === "string" ? Buffer.from(body) : body);
    }
    this.#write(formatHead(response, keepsAlive, takesChunks ? "chunked" : undefined));
    return this.#writePieces(body, takesChunks);
  }

  /**
   * Pulls the next piece once the socket is writable and no longer uses the previous piece. If the
   * client disconnects, the stream ends immediately, even while a piece is pending.
   */
  async #writePieces(pieces: AsyncIterable<Uint8Array>, isChunked: boolean): Promise<boolean> {
    const iterator = pieces[Symbol.asyncIterator]();
    this.#endPieces = () => void iterator.return?.();
    if (this.#isGone) this.#endPieces();
    try {
      while (!this.#isGone) {
        const { done, value } = await iterator.next();
        if (done) break;
        if (value.length > this.#partBytesMax) await this.#writeParts(value, isChunked);
        else await this.#writePiece(value, isChunked);
      }
    } catch {
      // The handler has reported the error.
      return false;
    } finally {
      this.#endPieces = null;
    }
    if (isChunked) this.#write("0\r\n\r\n");
    return !this.#isGone;
  }

  async #writeParts(bytes: Uint8Array, isChunked = false): Promise<boolean> {
    const partBytes = this.#partBytesMax;
    for (let at = 0; at < bytes.length; at += partBytes) {
      await this.#writePiece(bytes.subarray(at, at + partBytes), isChunked);
    }
    return !this.#isGone;
  }

  /** Resolves when the socket is writable and no longer uses the piece. */
  async #writePiece(piece: Uint8Array, isChunked: boolean): Promise<void> {
    // An empty chunk would end the body.
    if (piece.length === 0 || this.#isGone) return;
    if (piece.length <= COPIED_PIECE_BYTES_MAX) {
      if (!this.#write(isChunked ? chunkOf(piece) : Buffer.from(piece))) await this.#room();
      return;
    }
    const socket = this.#socket;
    let isInUse = true;
    socket.cork();
    if (isChunked) socket.write(chunkStart(piece));
    socket.write(piece, (error) => {
      // After an error, "close" wakes the writer.
      if (error !== null && error !== undefined) return;
      isInUse = false;
      this.#wakeWriter();
    });
    if (isChunked) socket.write(CRLF);
    socket.uncork();
    // "drain" may be emitted before the piece is released.
    while (isInUse && !this.#isGone) await this.#room();
  }

  /** Returns whether the socket is still writable. */
  #write(data: string | Uint8Array): boolean {
    return !this.#isGone && this.#socket.write(data);
  }

  #writeWhole(response: string | Uint8Array): true | Promise<boolean> {
    return this.#write(response) || this.#room().then(() => !this.#isGone);
  }

  /** Resolves when the socket is writable or closed. */
  #room(): Promise<void> {
    if (this.#isGone) return Promise.resolve();
    this.#stallWatch.start(this.#stall);
    return new Promise((resolve) => this.#wake = resolve);
  }

  #wakeWriter(): void {
    this.#stallWatch.stop(this.#stall);
    this.#wake?.();
    this.#wake = null;
  }

  readonly #stall = (): void => {
    const onStall = this.#onStall;
    this.#onStall = undefined;
    if (onStall === undefined) return void this.#socket.destroy();
    onStall();
    this.#stallWatch.start(this.#stall);
  };
}

/** The time in the last response, in seconds, and as a `date` header. */
let dateSecond = NaN;
let dateText = "";

/** @param framing the body length; absent for HEAD, or if closing the connection delimits it. */
function formatHead(
  { status, headers }: HttpResponse,
  keepsAlive: boolean,
  framing?: number | "chunked",
): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
  for (const name in headers) {
    if (name !== "connection") head += `${name}: ${headers[name]}\r\n`;
  }
  if (typeof framing === "number") head += `content-length: ${framing}\r\n`;
  else if (framing === "chunked") head += "transfer-encoding: chunked\r\n";
  if (!keepsAlive) head += "connection: close\r\n";
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) dateText = new Date(1000 * (dateSecond = second)).toUTCString();
  return `${head}date: ${dateText}\r\n\r\n`;
}

/** Returns the chunk-size line for a piece (RFC 9112 section 7.1). */
function chunkStart(piece: Uint8Array): string {
  return piece.length.toString(16) + CRLF;
}

let latestPiece: Uint8Array | null = null;
let latestChunk: Buffer | null = null;

/**
 * Returns a chunk with a copy of `piece`, which must not change afterwards. The last chunk is
 * cached: many followers may get the same piece in a row, and copying costs more than writing.
 */
function chunkOf(piece: Uint8Array): Buffer {
  if (latestChunk === null || piece !== latestPiece) {
    latestChunk = framed(chunkStart(piece), piece, CRLF);
    latestPiece = piece;
  }
  return latestChunk;
}

/** Concatenates ASCII strings and a copy of `bytes`. */
function framed(before: string, bytes: Uint8Array, after = ""): Buffer {
  const start = before.length;
  const end = start + bytes.length;
  const whole = Buffer.allocUnsafe(end + after.length);
  whole.write(before, 0, "latin1");
  whole.set(bytes, start);
  if (after !== "") whole.write(after, end, "latin1");
  return whole;
}
