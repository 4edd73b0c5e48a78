/** Which failures a bridge tries again after, and which somebody has to look at. */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { AuthorizationError } from "@nats-io/transport-node";
import { EventLogError, ProtocolError } from "../../mod.ts";

/** Trying again would not help. The message says what to do. */
export class BridgeError extends Error {
  override name = "BridgeError";
}

const BAD_REQUEST = 400;

/** Connections, time-outs and servers that are not ready yet are worth another try. */
export function isFinal(error: unknown): boolean {
  if (error instanceof JetStreamApiError) {
    // Somebody else published: the next session looks at who that was.
    const isOvertaken = error.code === JetStreamApiCodes.StreamWrongLastSequence;
    return error.status === BAD_REQUEST && !isOvertaken;
  }
  return [BridgeError, AuthorizationError, EventLogError, ProtocolError, TypeError]
    .some((kind) => error instanceof kind);
}
