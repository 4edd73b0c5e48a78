/** The error for a file that is not a valid segment or not the expected one. */
import { CorruptLogError } from "./errors.ts";

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
