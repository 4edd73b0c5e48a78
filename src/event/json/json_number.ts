/**
 * The number rule that the JSON grammar does not have: what a literal says must survive binary64.
 */

/**
 * @param literal a number of the JSON grammar.
 * @returns null, or what is wrong with it as the rest of a sentence.
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
