/** Client errors: the service returned an error, did not respond, or violated the protocol. */
import type { ErrorCode } from "../event/api_error.ts";
import type { CommittedEvent } from "../event/types.ts";

/**
 * The service returned an error. Distinguish errors by `code` and `status`, never by the message.
 * Handle unknown codes by status.
 */
export class EventLogError extends Error {
  /** Name of this error class. */
  override name = "EventLogError";
  /** HTTP status. */
  readonly status: number;
  /** Stable code, which this client may not know; null if the response has none. */
  readonly code: ErrorCode | (string & Record<never, never>) | null;
  /** The body: a string if it is not JSON, else an error document with the members of its code. */
  readonly body: unknown;
  /** Value of `Retry-After` in milliseconds; null if absent. */
  readonly retryAfterMs: number | null;

  /** Reads code and message from the body, if present. */
  constructor(status: number, body: unknown, retryAfterMs: number | null) {
    const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
    const code = typeof error === "string" ? error : null;
    super(code === null ? `status ${status} without an error document` : `${code}: ${message}`);
    this.status = status;
    this.code = code;
    this.body = body;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * A request got no response: the service is unreachable, the connection was lost or the timeout
 * expired. A write may have been committed; repeat it to find out.
 */
export class ConnectionError extends Error {
  /** Name of this error class. */
  override name = "ConnectionError";
}

/** A response violates the protocol: it comes from another program, or this client is too old. */
export class ProtocolError extends Error {
  /** Name of this error class. */
  override name = "ProtocolError";
}

/**
 * The log does not contain the event that `after` names: it was restored from an older backup, or
 * the position came from a different log. Restart from an earlier position.
 */
export class PositionError extends Error {
  /** Name of this error class. */
  override name = "PositionError";
  /** The last event in the log; null if it is empty. */
  readonly frontier: string | null;

  /** Creates the error that reports a position and the end of the log. */
  constructor(after: string, frontier: string | null) {
    const end = frontier === null ? "is empty" : `ends at ${frontier}`;
    super(`position ${after} is no event in the log, which ${end}; was an older backup restored?`);
    this.frontier = frontier;
  }
}

/** An event does not match its hashes. No event in its page or record is delivered. */
export class AlteredEventError extends Error {
  /** Name of this error class. */
  override name = "AlteredEventError";
  /** The event as received. */
  readonly event: CommittedEvent;

  /** Creates the error for an event. */
  constructor(event: CommittedEvent) {
    super(`event ${event.event_id} does not match its hashes`);
    this.event = event;
  }
}
