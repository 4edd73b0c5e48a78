/** The error for all faults that a soak finds in the service. */

/** The service broke a promise, or does not work. */
export class Violation extends Error {
  override name = "Violation";
}

/** @throws {Violation} the claim is false. */
export function claim(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Violation(message);
}
