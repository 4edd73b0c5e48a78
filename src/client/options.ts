/** Rejects unknown options. A misspelled filter would otherwise be ignored and match everything. */

/**
 * @param call Name of the method, for the message.
 * @param names All options, separated by spaces.
 * @throws {TypeError} if `given` is not an object, or has an option that is not in `names`.
 */
export function refuseUnknown(call: string, given: object, names: string): void {
  if (typeof given !== "object" || given === null) {
    throw new TypeError(
      `${call} expects an object, but got ${given === null ? null : typeof given}`,
    );
  }
  const known = names.split(" ");
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const meant = known.find((each) => lettersOf(each) === lettersOf(name));
    const advice = meant ?? `one of ${known.join(", ")}`;
    throw new TypeError(`${call} has no option ${name}; use ${advice}`);
  }
}

/** Normalizes a name, so that its snake_case and camelCase forms are equal. */
function lettersOf(name: string): string {
  return name.replaceAll(/[^a-z0-9]/gi, "").toLowerCase();
}
