/** Describes unexpected errors to the operator in one line, without the payload or the token. */

/** Messages from these errors may quote values, so only the error's name is reported. */
const QUOTING_ERRORS = [TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError];

/** Returns an error's name and source position, and its message unless that may quote values. */
export function describeDefect(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`;
  const isQuoting = QUOTING_ERRORS.some((type) => error instanceof type);
  const [message = ""] = error.message.split("\n");
  // The innermost stack frame, as `file.ts:line:column`.
  const place = /^\s+at .*?([^/\\\s(]+:\d+:\d+)\)?$/m.exec(error.stack ?? "")?.[1];
  return `${error.name}${isQuoting ? "" : `: ${message}`}${place ? ` (${place})` : ""}`;
}
