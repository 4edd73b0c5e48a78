/**
 * Writes the responses of one connection to its socket: a whole one in one write, a streamed one
 * piece by piece at the pace of the client.
 */
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { CHUNK_END, chunkOf, chunkStart, framed, LAST_CHUNK } from "./chunk.ts";
import type { HttpResponse } from "./message.ts";
import { formatResponseHead, type ResponseFraming } from "./response_head.ts";

/** A larger body is not copied to be written with its head. */
const COPIED_BYTES_MAX = 64 * 1024;
/** Nor is a larger piece with its frame: copies for all clients would add up. */
const COPIED_PIECE_BYTES_MAX = 8 * 1024;
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

export class ResponseWriter {
  readonly #socket: Socket;
  #isGone = false;
  /** Wakes the writer that waits for room. */
  #wake: (() => void) | null = null;
  /** Ends the pieces that are being written. */
  #endPieces: (() => void) | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("drain", () => this.#wakeWriter());
    socket.on("close", () => {
      this.#isGone = true;
      this.#endPieces?.();
      this.#wakeWriter();
    });
  }

  /** Tells a client that waits for it to send the body. */
  writeContinue(): void {
    if (!this.#isGone) this.#socket.write(CONTINUE);
  }

  /**
   * Writes a response. Resolves when there is room for another one: so a client that takes none of
   * its answers gets no more of them made. To false when it was broken off, after which nothing may
   * follow on the connection.
   * @param takesChunks whether the client knows chunks.
   */
  write(
    response: HttpResponse,
    keepsAlive: boolean,
    takesChunks: boolean,
  ): boolean | Promise<boolean> {
    const { status, headers, body } = response;
    if (body === null) {
      return this.#whenRoom(
        this.#writeText(formatResponseHead(status, headers, "own", keepsAlive)),
      );
    }
    if (typeof body === "string") {
      const bodyBytes = Buffer.byteLength(body);
      const head = formatResponseHead(status, headers, bodyBytes, keepsAlive);
      return this.#whenRoom(this.#writeText(head + body));
    }
    if (body instanceof Uint8Array) {
      const head = formatResponseHead(status, headers, body.length, keepsAlive);
      return this.#whenRoom(this.#writeWhole(head, body));
    }
    const framing = framingOf(headers, takesChunks);
    this.#writeText(formatResponseHead(status, headers, framing, keepsAlive));
    return this.#writePieces(body, framing === "chunked");
  }

  /**
   * Asks for the next piece only when the client has taken what was written and the socket no
   * longer uses the previous piece. When the client goes away the pieces are ended at once, also
   * while one is pending.
   */
  async #writePieces(pieces: AsyncIterable<Uint8Array>, isChunked: boolean): Promise<boolean> {
    const iterator = pieces[Symbol.asyncIterator]();
    this.#endPieces = () => void iterator.return?.();
    if (this.#isGone) this.#endPieces();
    try {
      while (!this.#isGone) {
        const { done, value } = await iterator.next();
        if (done || this.#isGone) break;
        await this.#writePiece(value, isChunked);
      }
    } catch {
      // The handler has told why.
      return false;
    } finally {
      this.#endPieces = null;
    }
    if (isChunked) this.#writeText(LAST_CHUNK);
    return !this.#isGone;
  }

  /** Resolves when there is room for more, and the socket no longer uses the piece. */
  async #writePiece(piece: Uint8Array, isChunked: boolean): Promise<void> {
    // An empty chunk would end the body.
    if (piece.length === 0 || this.#isGone) return;
    if (piece.length <= COPIED_PIECE_BYTES_MAX) {
      const copy = isChunked ? chunkOf(piece) : Buffer.from(piece);
      if (!this.#socket.write(copy)) await this.#room();
      return;
    }
    let isInUse = true;
    const onWritten = (error?: Error | null) => {
      // After an error the socket closes, and that wakes.
      if (error !== null && error !== undefined) return;
      isInUse = false;
      this.#wakeWriter();
    };
    if (isChunked) this.#writeParts(chunkStart(piece.length), piece, CHUNK_END, onWritten);
    else this.#socket.write(piece, onWritten);
    // There may be room before.
    while (isInUse && !this.#isGone) await this.#room();
  }

  /** Returns whether there is room for more. */
  #writeText(text: string): boolean {
    return this.#isGone || this.#socket.write(text);
  }

  /** Writes a small body together with its head: a write costs more than a copy. */
  #writeWhole(head: string, body: Uint8Array): boolean {
    if (this.#isGone) return true;
    return body.length <= COPIED_BYTES_MAX
      ? this.#socket.write(framed(head, body))
      : this.#writeParts(head, body);
  }

  /**
   * Writes ASCII texts and the bytes between them at once, without a copy.
   * @param onWritten called when the socket no longer uses the bytes, or has failed.
   */
  #writeParts(
    before: string,
    bytes: Uint8Array,
    after?: string,
    onWritten?: (error?: Error | null) => void,
  ): boolean {
    const socket = this.#socket;
    socket.cork();
    socket.write(before);
    const hasRoom = socket.write(bytes, onWritten);
    if (after !== undefined) socket.write(after);
    socket.uncork();
    return hasRoom;
  }

  #whenRoom(hasRoom: boolean): true | Promise<boolean> {
    return hasRoom || this.#room().then(() => !this.#isGone);
  }

  /** Resolves when there is room to write, or the connection is closed. */
  #room(): Promise<void> {
    if (this.#isGone) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #wakeWriter(): void {
    this.#wake?.();
    this.#wake = null;
  }
}

function framingOf(headers: HttpResponse["headers"], takesChunks: boolean): ResponseFraming {
  if ("content-length" in headers) return "own";
  return takesChunks ? "chunked" : "close";
}
