/** The error with which a soak reports a fault in the service. */

/** The service broke a guarantee or stopped working. */
export class Violation extends Error {
  override name = "Violation";
}

/** @throws {Violation} if the claim is false. */
export function claim(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Violation(message);
}
