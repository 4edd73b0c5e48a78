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
  /** The pieces of a line whose end has not been read. */
  let pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  const append = (piece: Uint8Array) => {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) throw new ProtocolError(`a line has more than ${limitBytes} bytes`);
    if (piece.length > 0) pieces.push(piece);
  };
  try {
    for (let next = await read(); !next.done; next = await read()) {
      const chunk = next.value;
      let start = 0;
      for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
        append(chunk.subarray(start, end));
        yield joined(pieces, sizeBytes);
        pieces = [];
        sizeBytes = 0;
        start = end + 1;
      }
      append(chunk.subarray(start));
    }
  } finally {
    // A body that failed has nothing left to close, and says so once more.
    await reader.cancel().catch(() => {});
  }
}

function joined(pieces: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const line = new Uint8Array(sizeBytes);
  let offset = 0;
  for (const piece of pieces) {
    line.set(piece, offset);
    offset += piece.length;
  }
  return line;
}
