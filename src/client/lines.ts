/** Splits a response body into lines lazily. */
import { Buffer } from "node:buffer";
import { ProtocolError } from "./errors.ts";
import { chunksOf } from "./response_body.ts";

const LF = 0x0a;

/**
 * Yields the lines of a body without their LF. Drops an unterminated last line, which a lost
 * connection leaves behind. Ending the iteration early cancels the body.
 * @param name Name of the request, for messages.
 * @param limitBytes Maximum line length. At most this much plus one socket read is buffered.
 * @throws {ProtocolError} if a line is longer than `limitBytes`.
 * @throws {ConnectionError} if the connection failed.
 */
export async function* readLines(
  name: string,
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
): AsyncGenerator<Uint8Array> {
  /** The parts of the current line received so far. */
  let pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  const append = (piece: Uint8Array) => {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) throw new ProtocolError(`a line exceeds ${limitBytes} bytes`);
    if (piece.length > 0) pieces.push(piece);
  };
  for await (const chunk of chunksOf(name, body)) {
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
}
