/** API error codes with their statuses. Both are part of the protocol and never change. */

/** HTTP status for every error code. */
export const ERROR_STATUS = {
  invalid_request: 400,
  invalid_batch: 400,
  invalid_events: 400,
  invalid_source_lineage: 400,
  invalid_source_retirement: 400,
  invalid_replay_request: 400,
  invalid_streams_request: 400,
  stream_anchor_unavailable: 400,
  unauthorized: 401,
  not_found: 404,
  source_not_found: 404,
  method_not_allowed: 405,
  batch_id_conflict: 409,
  source_retired: 409,
  source_lineage_conflict: 409,
  stream_frontier_conflict: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  overloaded: 429,
  internal_error: 500,
  storage_full: 500,
  writer_poisoned: 503,
} as const;

/** A stable error code: the `error` member of an error document. */
export type ErrorCode = keyof typeof ERROR_STATUS;

/** An item in the `errors` array: an invalid event in a batch. */
export interface EventFault {
  /** Zero-based index of the event in the batch. */
  index: number;
  /** Code for every invalid event. */
  code: "invalid_event";
  /** Human-readable description of the violated rule. */
  message: string;
}

/** Fails a request with the error document `{error, message, ...context}`. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  /** Additional members for the error document. */
  readonly context: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, context: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.context = context;
  }
}
