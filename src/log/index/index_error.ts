import { CorruptLogError } from "../storage/errors.ts";

/** An index is missing, damaged, or not the expected one. The segments' rows are unaffected. */
export class IndexError extends CorruptLogError {
  override name = "IndexError";
}
