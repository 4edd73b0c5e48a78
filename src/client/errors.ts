/** Client errors: the service returned an error, did not respond, or violated the protocol. */
import type { ErrorCode, EventFault } from "../event/api_error.ts";
import type { CommittedEvent } from "../event/types.ts";

/** Members in error documents in addition to `error` and `message`, by code. */
export interface ErrorContexts {
  /** `errors` is present if the fault is inside an event. */
  invalid_request: { errors?: EventFault[] };
  /** Every invalid event. */
  invalid_events: { errors: EventFault[] };
  /** The source that was to be retired. */
  source_not_found: { source: string };
  /** The batch id that was committed with different events. */
  batch_id_conflict: { source: string; batch_id: string };
  /** The retired source's last event and the event that records the retirement. */
  source_retired: { source: string; final_frontier: string; retirement_event_id: string };
  /** Expected and actual last event; the actual one is null if the predecessor is not retired. */
  source_lineage_conflict: {
    source: string;
    predecessor_source: string;
    expected_predecessor_frontier: string;
    actual_predecessor_frontier: string | null;
  };
  /** Expected and actual last event in the stream; null if the stream is empty. */
  stream_frontier_conflict: {
    source: string;
    stream: string;
    expected_frontier: string | null;
    actual_frontier: string | null;
  };
}

/** The error document for a code. It may have further members. */
export type ErrorDocument<Code extends ErrorCode> =
  & { error: Code; message: string }
  & (Code extends keyof ErrorContexts ? ErrorContexts[Code] : unknown);

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
  /** The body, parsed if it is JSON (including unknown members), otherwise as a string. */
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

  /** Returns whether this error has `code`, and narrows the type of `body`. */
  is<Code extends ErrorCode>(code: Code): this is CodedError<Code> {
    return this.code === code;
  }
}

/** An {@linkcode EventLogError} with a known code. */
export type CodedError<Code extends ErrorCode> = EventLogError & {
  readonly code: Code;
  readonly body: ErrorDocument<Code>;
};

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
