/**
 * What can go wrong between a client and the service: the service refuses, it gives no answer, or
 * its answer is none of this protocol.
 */
import type { ErrorCode, EventFault } from "../event/api_error.ts";

/** Members of an error document besides `error` and `message`, for the codes that have any. */
export interface ErrorContexts {
  /** `errors` when the fault lies inside one event. */
  invalid_request: { errors?: EventFault[] };
  /** Every bad event. */
  invalid_events: { errors: EventFault[] };
  /** The source that was to be retired. */
  source_not_found: { source: string };
  /** The identity that was committed with other events. */
  batch_id_conflict: { source: string; batch_id: string };
  /** The last event of the retired source, and the one that records the retirement. */
  source_retired: { source: string; final_frontier: string; retirement_event_id: string };
  /** What was declared of the predecessor, and what is so; null when it is not retired. */
  source_lineage_conflict: {
    source: string;
    predecessor_source: string;
    expected_predecessor_frontier: string;
    actual_predecessor_frontier: string | null;
  };
  /** The last event of the stream as expected and as it is; null for none. */
  stream_frontier_conflict: {
    source: string;
    stream: string;
    expected_frontier: string | null;
    actual_frontier: string | null;
  };
}

/** The error document of one code. Other members may be there too. */
export type ErrorDocument<Code extends ErrorCode> =
  & { error: Code; message: string }
  & (Code extends keyof ErrorContexts ? ErrorContexts[Code] : unknown);

/** What an {@linkcode EventLogError} is made of. */
export interface EventLogErrorInit {
  /** HTTP status. */
  status: number;
  /** The body, parsed where it is JSON, else its text. */
  body: unknown;
  /** What `Retry-After` asks for; null without one. */
  retryAfterMs: number | null;
}

/**
 * The service refused a request. Tell errors apart by `code` and `status`, never by the message; a
 * code that is not known is an error with its status.
 *
 * @example
 * ```ts
 * import { EventLogClient, EventLogError, unixFetch } from "@ground/service";
 *
 * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
 * try {
 *   await client.retire("nobody");
 * } catch (error) {
 *   if (!(error instanceof EventLogError && error.is("source_not_found"))) throw error;
 *   console.log(`${error.body.source} has no events`);
 * }
 * ```
 */
export class EventLogError extends Error {
  /** Tells it from other errors in logs. */
  override name = "EventLogError";
  /** HTTP status. */
  readonly status: number;
  /** Stable code, also one this client does not know; null for a response without one. */
  readonly code: ErrorCode | (string & Record<never, never>) | null;
  /** The body, parsed where it is JSON, else its text. Unknown members are kept. */
  readonly body: unknown;
  /** What `Retry-After` asked for; null without one. */
  readonly retryAfterMs: number | null;

  /** Takes code and message from the body where they are there. */
  constructor({ status, body, retryAfterMs }: EventLogErrorInit) {
    const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
    const code = typeof error === "string" ? error : null;
    super(code === null ? `status ${status} without an error document` : `${code}: ${message}`);
    this.status = status;
    this.code = code;
    this.body = body;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether this is the error of that code; then `body` is its document. */
  is<Code extends ErrorCode>(code: Code): this is CodedError<Code> {
    return this.code === code;
  }
}

/** An {@linkcode EventLogError} of one code. */
export type CodedError<Code extends ErrorCode> = EventLogError & {
  readonly code: Code;
  readonly body: ErrorDocument<Code>;
};

/**
 * A request got no answer: the service could not be reached, the connection was lost on the way, or
 * it took too long. What a write was to do may be done; to know, ask for the same again.
 */
export class ConnectionError extends Error {
  /** Tells it from other errors in logs. */
  override name = "ConnectionError";
}

/**
 * An answer that is none of this protocol: another program, or a service this client is too old
 * for.
 */
export class ProtocolError extends Error {
  /** Tells it from other errors in logs. */
  override name = "ProtocolError";
}
