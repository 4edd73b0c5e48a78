/** Which failures a retry can fix, and which an operator must fix. */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { AuthorizationError } from "@nats-io/transport-node";
import { EventLogError, ProtocolError } from "../mod.ts";
import { AssertionError } from "../src/assert.ts";
import { CommandError } from "../src/commands/exit.ts";
import {
  CorruptLogError,
  UnsupportedFormatError,
  WriterPoisonedError,
} from "../src/log/storage/errors.ts";

const BAD_REQUEST = 400;
const TOO_MANY_REQUESTS = 429;

/** Codes of errors that the next session does not meet. Most are not in `JetStreamApiCodes`. */
const PASSING_CODES: number[] = [
  // The stream ends with another message than the publisher expected.
  JetStreamApiCodes.StreamWrongLastSequence,
  10070,
  // Another publisher has stored a message of an atomic batch.
  10201,
  // The start of an atomic batch was lost with a leader.
  10176,
];

/** Whether NATS refused a message for good, with this status and code. */
export function isRefusal(status: number, code: number): boolean {
  return status === BAD_REQUEST && !PASSING_CODES.includes(code);
}

const FINAL_KINDS = [
  ...[CommandError, AssertionError, TypeError, RangeError, AuthorizationError],
  ...[EventLogError, ProtocolError, CorruptLogError, UnsupportedFormatError, WriterPoisonedError],
];

/** Connections, timeouts and servers that are not ready yet are retried. */
export function isFinal(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return isRefusal(error.status, error.code);
  if (error instanceof EventLogError && error.status === TOO_MANY_REQUESTS) return false;
  return FINAL_KINDS.some((kind) => error instanceof kind);
}
