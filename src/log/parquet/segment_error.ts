/** Says that a file is not the segment it is taken for. */

/** What is wrong: the form of the file, the order of the events in it, or its bytes. */
export type SegmentFault = "segment_invalid" | "order_invalid" | "file_hash_mismatch";

/** A segment cannot be read: damaged, of another format, or hostile. */
export class SegmentError extends Error {
  override name = "SegmentError";
  readonly fault: SegmentFault;

  constructor(message: string, options: ErrorOptions & { fault?: SegmentFault } = {}) {
    super(message, options);
    this.fault = options.fault ?? "segment_invalid";
  }
}
