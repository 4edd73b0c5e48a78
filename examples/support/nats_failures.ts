/** Which failures a bridge retries, and which an operator must fix. */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { AuthorizationError } from "@nats-io/transport-node";
import { EventLogError, ProtocolError } from "../../mod.ts";

/** A retry cannot fix it; the message says what to do. */
export class BridgeError extends Error {
  override name = "BridgeError";
}

const BAD_REQUEST = 400;

/** Connections, timeouts and servers that are not ready yet are retried. */
export function isFinal(error: unknown): boolean {
  if (error instanceof JetStreamApiError) {
    // Somebody else published; the next session checks who.
    const isOvertaken = error.code === JetStreamApiCodes.StreamWrongLastSequence;
    return error.status === BAD_REQUEST && !isOvertaken;
  }
  return [BridgeError, AuthorizationError, EventLogError, ProtocolError, TypeError]
    .some((kind) => error instanceof kind);
}
