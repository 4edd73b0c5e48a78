/** Refuses unknown options: JavaScript would ignore a misspelled filter and return everything. */

/** All names of `T`, which the compiler keeps complete. */
export type Names<T> = Readonly<Record<keyof T, true>>;

/**
 * @param call The method, for the message.
 * @throws {TypeError} `given` has a name that `T` does not have.
 */
export function refuseUnknown<T extends object>(call: string, given: T, names: Names<T>): void {
  const known = Object.keys(names);
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(names, name)) continue;
    const meant = known.find((each) => lettersOf(each) === lettersOf(name));
    const advice = meant ?? `one of ${known.join(", ")}`;
    throw new TypeError(`${call} has no option ${name}; use ${advice}`);
  }
}

/** Spelled alike in snake_case and camelCase. */
function lettersOf(name: string): string {
  return name.replaceAll(/[^a-z0-9]/gi, "").toLowerCase();
}
