/** Drops undefined properties, which argument parsers set but the client options do not accept. */
export function withoutUndefined<T extends object>(
  options: T,
): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}
