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

/**
 * Runs code of the Parquet library over bytes of a file: what it throws says that they are not
 * right.
 * @throws {SegmentError}
 */
export function decoding<Result>(what: string, decode: () => Result): Result {
  try {
    return decode();
  } catch (error) {
    if (error instanceof SegmentError) throw error;
    throw new SegmentError(`${what}: ${(error as Error).message}`, { cause: error });
  }
}
