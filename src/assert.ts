/** Thrown when an invariant of this program does not hold: a defect here, never bad input. */
export class AssertionError extends Error {
  override name = "AssertionError";
}

/** Stops the caller before it can act on a broken invariant. On in production. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(`broken invariant: ${invariant}`);
}
