/** The number rule beyond the JSON grammar: a literal must survive conversion to binary64. */

/**
 * Checks a number literal of the JSON grammar.
 * @returns null if valid, else a predicate for the error message: "is too large for ...".
 */
export function numberFault(literal: string): string | null {
  const value = Number(literal);
  if (!Number.isFinite(value)) return "is too large for a binary64 number";
  const isIntegerLiteral = !/[.eE]/.test(literal);
  if (isIntegerLiteral && Math.abs(value) > Number.MAX_SAFE_INTEGER && String(value) !== literal) {
    return "cannot be represented exactly as a binary64 number";
  }
  return null;
}
