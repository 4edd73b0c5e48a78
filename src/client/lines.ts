/** Cuts a body into lines, reading no further than asked for. */
import { ProtocolError } from "./errors.ts";
import { orConnectionError } from "./transport.ts";

const LF = 0x0a;

/**
 * The lines of a body without their LF. What follows the last LF is no line: the connection was
 * lost in its middle. Leaving the iteration early closes the body.
 * @param name What was asked for, for messages.
 * @param limitBytes Longest line; what is held never exceeds it by more than one read.
 * @throws {ProtocolError} a line is longer.
 * @throws {ConnectionError} the connection failed.
 */
export async function* readLines(
  name: string,
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const read = () => orConnectionError(name, () => reader.read());
  let line = new UnfinishedLine(limitBytes);
  try {
    for (let next = await read(); !next.done; next = await read()) {
      const chunk = next.value;
      let start = 0;
      for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
        yield line.finish(chunk.subarray(start, end));
        line = new UnfinishedLine(limitBytes);
        start = end + 1;
      }
      line.append(chunk.subarray(start));
    }
  } finally {
    // A body that failed has nothing left to close, and says so once more.
    await reader.cancel().catch(() => {});
  }
}

/** The pieces of a line whose end has not been read. */
class UnfinishedLine {
  readonly #limitBytes: number;
  readonly #pieces: Uint8Array[] = [];
  #sizeBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  append(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#limitBytes) {
      throw new ProtocolError(`a line has more than ${this.#limitBytes} bytes`);
    }
    this.#pieces.push(piece);
  }

  /** The whole line. */
  finish(lastPiece: Uint8Array): Uint8Array {
    this.append(lastPiece);
    if (this.#pieces.length === 1) return this.#pieces[0]!;
    const line = new Uint8Array(this.#sizeBytes);
    let offset = 0;
    for (const piece of this.#pieces) {
      line.set(piece, offset);
      offset += piece.length;
    }
    return line;
  }
}
