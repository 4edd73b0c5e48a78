/** The failures that `verify` reports. */

/** The `failure` codes in the report, which are wire names. */
export type FailureCode =
  | "manifest_invalid"
  | "segment_invalid"
  | "pending_invalid"
  | "tail_invalid"
  | "order_invalid"
  | "idempotency_invalid"
  | "file_hash_mismatch"
  | "batch_commitment_mismatch"
  | "content_hash_mismatch"
  | "event_hash_mismatch"
  | "chain_head_mismatch";

/** The location of a failure, and the values that differ. */
export interface FailureDetail {
  /** Relative to the log directory. */
  path: string;
  eventId?: string | null;
  /** The value recorded in the log. */
  expected?: string | number;
  /** The value computed from the events. */
  found?: string | number;
}

export class VerifyFailure extends Error {
  override name = "VerifyFailure";
  readonly code: FailureCode;

  constructor(
    code: FailureCode,
    what: string,
    { path, eventId, expected, found }: FailureDetail,
    options?: ErrorOptions,
  ) {
    const event = eventId ? `, event ${eventId}` : "";
    const values = expected === undefined ? "" : `: expected ${expected}, found ${found}`;
    super(`${path}${event}: ${what}${values}`, options);
    this.code = code;
  }
}

/** A damaged file. Can be sent between threads. */
export interface Damage<Code = FailureCode | "not checked"> {
  /** `not checked` if the file could not be read. */
  code: Code;
  /** Begins with the path of the file. */
  message: string;
}
