/** How an unexpected error is told to the operator: one line, without payload or token. */

/**
 * V8 quotes the values at hand in the messages of these: of them only the name is told.
 */
const QUOTING_ERRORS = [TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError];

/** Name, message where it is safe, and the place in the code. */
export function describeDefect(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`;
  const isQuoting = QUOTING_ERRORS.some((type) => error instanceof type);
  const [message = ""] = error.message.split("\n");
  const place = thrownAt(error);
  return `${error.name}${isQuoting ? "" : `: ${message}`}${place === null ? "" : ` (${place})`}`;
}

/** The innermost frame as `file.ts:line:column`, without folders. */
function thrownAt(error: Error): string | null {
  const frame = /^\s+at .*?([^/\\\s(]+:\d+:\d+)\)?$/m.exec(error.stack ?? "");
  return frame?.[1] ?? null;
}
