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

/** The kind of fault: an invalid format, events out of order, or different bytes. */
export type SegmentFault = "segment_invalid" | "order_invalid" | "file_hash_mismatch";

/** A segment cannot be read because it is damaged, malicious or in a different format. */
export class SegmentError extends CorruptLogError {
  override name = "SegmentError";
  readonly fault: SegmentFault;

  constructor(message: string, options: ErrorOptions & { fault?: SegmentFault } = {}) {
    super(message, options);
    this.fault = options.fault ?? "segment_invalid";
  }
}
