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
export async function* chunksOf(name: string, { body }: Response): AsyncGenerator<Uint8Array> {
  try {
    if (body !== null) yield* body;
  } catch (cause) {
    throw requestError(name, cause);
  }
}

/** Reads a body. @throws {ProtocolError} if it exceeds its limit; the rest is not read. */
export async function bytesOf(name: string, response: Response, limitBytes: number) {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of chunksOf(name, response)) {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) {
      throw new ProtocolError(`response to ${name} exceeds ${limitBytes} bytes`);
    }
    pieces.push(piece);
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/**
 * Yields lines without their LF. By default, drops an unterminated last one, which a lost
 * connection leaves behind. @throws {ProtocolError} if a line exceeds its limit.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  limitBytes: number,
  rest: "keep rest" | "drop rest" = "drop rest",
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
