/** Errors for a log that cannot be opened or written. */

/** Committed bytes are damaged or missing. Nothing was changed; see docs/operations.md. */
export class CorruptLogError extends Error {
  override name = "CorruptLogError";
}

/** The log is in a newer format than this program can read or write. */
export class UnsupportedFormatError extends Error {
  override name = "UnsupportedFormatError";
}

/** The disk is full. The commit was undone, and the writer continues. */
export class StorageFullError extends Error {
  override name = "StorageFullError";
}

/** The outcome of a commit is unknown, so this writer accepts no more. A restart recovers. */
export class WriterPoisonedError extends Error {
  override name = "WriterPoisonedError";
}

/** The `failure` codes in the report of `verify`, which are wire names. */
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

/** Damage that `verify` reports by its code. The message begins with the path of the file. */
export class VerifyFailure extends CorruptLogError {
  override name = "VerifyFailure";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A segment cannot be read because it is damaged, malicious or in a different format. */
export class SegmentError extends VerifyFailure {
  override name = "SegmentError";

  constructor(message: string, options: ErrorOptions & { code?: FailureCode } = {}) {
    super(options.code ?? "segment_invalid", message, options);
  }
}
