/** Thrown for a broken invariant, which is a bug in this program and never caused by bad input. */
export class AssertionError extends Error {
  override name = "AssertionError";
}

/** Throws if an invariant does not hold, even in production. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(`broken invariant: ${invariant}`);
}
