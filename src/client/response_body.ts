/** Reads response bodies within bounds. */
import { Buffer } from "node:buffer";
import { ConnectionError, ProtocolError } from "./errors.ts";

/**
 * Converts a TypeError to a ConnectionError. `fetch` throws a TypeError if the connection fails
 * before the body is complete.
 * @param name Name of the request, for the message.
 */
export async function orConnectionError<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new ConnectionError(`${name} got no response: ${cause.message}`, { cause });
  }
}

/**
 * Yields a body as it arrives. Ending the iteration early cancels the body.
 * @throws {ConnectionError} if the connection failed.
 */
export async function* chunksOf(
  name: string,
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const read = () => orConnectionError(name, () => reader.read());
  try {
    for (let next = await read(); !next.done; next = await read()) yield next.value;
  } finally {
    // After a failed read, cancel() rejects with the same error.
    await reader.cancel().catch(() => {});
  }
}

/**
 * Reads a body as text.
 * @throws {ProtocolError} if it is longer than `limitBytes`; the rest is not read.
 * @throws {ConnectionError} if the connection failed.
 */
export async function textOf(name: string, { body }: Response, limitBytes: number) {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of body === null ? [] : chunksOf(name, body)) {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) {
      throw new ProtocolError(`response to ${name} exceeds ${limitBytes} bytes`);
    }
    pieces.push(piece);
  }
  return new TextDecoder().decode(Buffer.concat(pieces));
}
