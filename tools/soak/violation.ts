/** The error of all faults that the soak finds in the service. */

/** A promise of the service does not hold, or the service does not work. */
export class Violation extends Error {
  override name = "Violation";
}

/** @throws {Violation} the claim does not hold. */
export function claim(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Violation(message);
}
