/** Which failures a bridge retries, and which an operator must fix. */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { AuthorizationError } from "@nats-io/transport-node";
import { ConnectionError, EventLogError, PositionError, ProtocolError } from "../../mod.ts";

/** A retry cannot fix it; the message says what to do. */
export class BridgeError extends Error {
  override name = "BridgeError";
}

/** Errors of the bridge itself, and of the log's service. */
const OWN = [BridgeError, EventLogError, PositionError, ProtocolError];

const BAD_REQUEST = 400;

/** Connections, timeouts and servers that are not ready yet are retried. */
export function isFinal(error: unknown): boolean {
  if (error instanceof JetStreamApiError) {
    // Somebody else published; the next session checks who.
    const isOvertaken = error.code === JetStreamApiCodes.StreamWrongLastSequence;
    return error.status === BAD_REQUEST && !isOvertaken;
  }
  return [AuthorizationError, TypeError, ...OWN].some((kind) => error instanceof kind);
}

/** Names the end that failed in an error of NATS; the others name theirs. */
export function withEnd(error: unknown): Error {
  if ([ConnectionError, ...OWN].some((kind) => error instanceof kind)) return error as Error;
  return new Error(`NATS: ${error instanceof Error ? error.message : error}`, { cause: error });
}
