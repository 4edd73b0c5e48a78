/** Reads response bodies within bounds. */
import { Buffer } from "node:buffer";
import { ConnectionError, ProtocolError } from "./errors.ts";

const LF = 0x0a;

/** Returns the error for a failed request; `fetch` throws a TypeError if the connection fails. */
export function requestError(name: string, cause: unknown): unknown {
  if (!(cause instanceof TypeError)) return cause;
  return new ConnectionError(`${name} got no response: ${cause.message}`, { cause });
}

/** Yields a body as it arrives. Ending the iteration early cancels the body. */
async function* chunksOf(
  name: string,
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (cause) {
    throw requestError(name, cause);
  }
}

/** Reads a body. @throws {ProtocolError} if it exceeds its limit; the rest is not read. */
export async function bytesOf(name: string, { body }: Response, limitBytes: number) {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of body === null ? [] : chunksOf(name, body)) {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) {
      throw new ProtocolError(`response to ${name} exceeds ${limitBytes} bytes`);
    }
    pieces.push(piece);
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/**
 * Yields the lines of a body without their LF, but not an unterminated last one, which a lost
 * connection leaves behind. @throws {ProtocolError} if a line exceeds its limit.
 */
export function readLines(
  name: string,
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
): AsyncGenerator<Uint8Array> {
  return splitLines(chunksOf(name, body), limitBytes, "drop rest");
}

/** @param rest whether to yield what follows the last LF. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  limitBytes: number,
  rest: "keep rest" | "drop rest",
): AsyncGenerator<Uint8Array> {
  /** The parts of the current line received so far. */
  let pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  const append = (piece: Uint8Array) => {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) throw new ProtocolError(`a line exceeds ${limitBytes} bytes`);
    if (piece.length > 0) pieces.push(piece);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      append(chunk.subarray(start, end));
      yield pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
      pieces = [];
      sizeBytes = 0;
      start = end + 1;
    }
    append(chunk.subarray(start));
  }
  if (rest === "keep rest" && sizeBytes > 0) yield Buffer.concat(pieces);
}
