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
/** Not among `JetStreamApiCodes`. */
const STREAM_WRONG_LAST_MESSAGE_ID = 10070;

/** The stream ends with another message than the publisher expected. */
const OVERTAKEN_CODES: number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  STREAM_WRONG_LAST_MESSAGE_ID,
];

/** Whether NATS refused a message for good, with this status and code. */
export function isRefusal(status: number, code: number): boolean {
  return status === BAD_REQUEST && !OVERTAKEN_CODES.includes(code);
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
