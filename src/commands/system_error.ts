/** What the operating system said, for messages and decisions. */

/** The errno name of a system error, such as `ENOENT`; empty for any other error. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** The reason in one line. */
export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s*\n\s*/g, " ");
}
