/** Describes unexpected errors to the operator in one line, without the payload or the token. */

/** Messages from these errors may quote values, so only the error's name is reported. */
const QUOTING_ERRORS = [TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError];

/** Returns an error's name and source position, and its message unless that may quote values. */
export function describeDefect(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`;
  const isQuoting = QUOTING_ERRORS.some((type) => error instanceof type);
  const [message = ""] = error.message.split("\n");
  const place = thrownAt(error);
  return `${error.name}${isQuoting ? "" : `: ${message}`}${place === null ? "" : ` (${place})`}`;
}

/** Returns the position of the innermost stack frame as `file.ts:line:column`. */
function thrownAt(error: Error): string | null {
  const frame = /^\s+at .*?([^/\\\s(]+:\d+:\d+)\)?$/m.exec(error.stack ?? "");
  return frame?.[1] ?? null;
}
