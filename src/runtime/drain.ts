/**
 * What to do with a request's body that nobody wants: a client that is still sending gets to read
 * its response only if the connection is not closed under it.
 */
import { ConnectionLostError } from "../http/message.ts";
import { DRAIN_BYTES_MAX, DRAIN_TIMEOUT_MS } from "../limits.ts";

/** A body as both runtimes can read it. */
export interface BodySource {
  /** The next piece, null at the end. @throws {ConnectionLostError} */
  next(): Promise<Uint8Array | null>;
  /** Ends the body where it is; a pending `next()` settles if the runtime lets it. */
  cancel(): void;
}

/** Reads a body to its end and drops it, within bounds; what exceeds them is cancelled. */
export async function drain(body: BodySource): Promise<void> {
  const timer = setTimeout(() => body.cancel(), DRAIN_TIMEOUT_MS);
  try {
    await dropPieces(body);
  } catch (error) {
    if (!(error instanceof ConnectionLostError)) throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function dropPieces(body: BodySource): Promise<void> {
  let drainedBytes = 0;
  while (drainedBytes <= DRAIN_BYTES_MAX) {
    const piece = await body.next();
    if (piece === null) return;
    drainedBytes += piece.length;
  }
  body.cancel();
}
