/** Strings as RFC 8785 spells them (section 3.2.2.2), which is how `JSON.stringify` spells them. */

/** Texts that are spelled as they are: no quote, backslash, control character or surrogate. */
const PLAIN_TEXT = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/**
 * The canonical JSON string of a text.
 * @throws {TypeError} when it has an unpaired surrogate.
 */
export function quoteString(text: string): string {
  // Most texts are short and plain; for them a test and a concatenation cost less than a call.
  if (PLAIN_TEXT.test(text)) return '"' + text + '"';
  if (!text.isWellFormed()) {
    throw new TypeError("a string with an unpaired surrogate has no canonical JSON form");
  }
  return JSON.stringify(text);
}

/** What an error message quotes of a client's text, in UTF-16 code units. */
const QUOTED_TEXT_MAX = 64;

/** A client's text as a JSON string for a message, cut to a bounded length. */
export function quoteShort(text: string): string {
  return JSON.stringify(cutText(text));
}

/** A client's text for a message, cut to a bounded length. */
export function cutText(text: string): string {
  return text.length > QUOTED_TEXT_MAX ? text.slice(0, QUOTED_TEXT_MAX) + "..." : text;
}
