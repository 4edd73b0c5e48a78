/** What the soak finds wrong with the service, as one kind of error. */

/** A claim of the service does not hold, or the service does not work. */
export class Violation extends Error {
  override name = "Violation";
}

/** @throws {Violation} unless the claim holds. */
export function claim(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Violation(message);
}
