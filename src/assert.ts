/** A broken invariant: a bug in this program, never bad input. */
export class AssertionError extends Error {
  override name = "AssertionError";
}

/** Throws if an invariant does not hold, even in production. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(`broken invariant: ${invariant}`);
}
