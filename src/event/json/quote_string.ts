/** Formats string literals as in RFC 8785 section 3.2.2.2, which matches `JSON.stringify`. */

/** Strings that need no escapes: no quote, backslash, control character or surrogate. */
const PLAIN_TEXT = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/**
 * Formats a string as a canonical JSON literal.
 * @throws {TypeError} if it has an unpaired surrogate.
 */
export function quoteString(text: string): string {
  // Most strings are short and plain. For them, this is cheaper than JSON.stringify().
  if (PLAIN_TEXT.test(text)) return '"' + text + '"';
  if (!text.isWellFormed()) {
    throw new TypeError("a string with an unpaired surrogate has no canonical JSON form");
  }
  return JSON.stringify(text);
}

/** Maximum length of client input quoted in an error message, in UTF-16 code units. */
const QUOTED_TEXT_MAX = 64;

/** Truncates and quotes client input for a message. */
export function quoteShort(text: string): string {
  return JSON.stringify(cutText(text));
}

/** Truncates client input for a message. */
export function cutText(text: string): string {
  return text.length > QUOTED_TEXT_MAX ? text.slice(0, QUOTED_TEXT_MAX) + "..." : text;
}
