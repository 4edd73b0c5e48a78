/** Distinguishes failures worth retrying from failures that need an operator. */
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { AuthorizationError } from "@nats-io/transport-node";
import { ConnectionError, EventLogError, ProtocolError } from "../mod.ts";
import { AssertionError } from "../src/assert.ts";
import { mayRepeat } from "../src/client/retry.ts";
import { CommandError } from "../src/commands/exit.ts";
import {
  CorruptLogError,
  UnsupportedFormatError,
  WriterPoisonedError,
} from "../src/log/storage/errors.ts";

const BAD_REQUEST = 400;

/** Codes of errors that a new session clears. Most are missing from `JetStreamApiCodes`. */
const PASSING_CODES: number[] = [
  // The stream's last message is not the one that the publisher expected.
  JetStreamApiCodes.StreamWrongLastSequence,
  10070,
  // The stream already contains a message in the atomic batch, from another publisher.
  10201,
  // The first messages of an atomic batch were lost when the leader failed.
  10176,
];

/** Whether a NATS error with this status and code is permanent. */
export function isRefusal(status: number, code: number): boolean {
  return status === BAD_REQUEST && !PASSING_CODES.includes(code);
}

const FINAL_KINDS = [
  ...[CommandError, AssertionError, TypeError, RangeError, AuthorizationError],
  ...[ConnectionError, EventLogError, ProtocolError],
  ...[CorruptLogError, UnsupportedFormatError, WriterPoisonedError],
];

/** Whether a retry is pointless. Lost connections, timeouts and unready servers are retried. */
export function isFinal(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return isRefusal(error.status, error.code);
  if (mayRepeat(error)) return false;
  return FINAL_KINDS.some((kind) => error instanceof kind);
}
