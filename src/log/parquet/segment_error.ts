/** Says that a file is not the segment it is taken for. */

/** What is wrong: the form of the file, or the order of the events in it. */
export type SegmentFault = "segment_invalid" | "order_invalid";

/** A segment cannot be read: damaged, of another format, or hostile. */
export class SegmentError extends Error {
  override name = "SegmentError";
  readonly fault: SegmentFault;

  constructor(message: string, options: ErrorOptions & { fault?: SegmentFault } = {}) {
    super(message, options);
    this.fault = options.fault ?? "segment_invalid";
  }
}
