/** Makes a JSON text that nests without bound safe to parse. */

const QUOTE = 0x22;
const DIGIT_0 = 0x30;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Replaces every container below a depth by 0. The text must be valid JSON. */
export function cutDeepContainers(bytes: Uint8Array, depthMax: number): Uint8Array {
  const kept = new Uint8Array(bytes.length);
  let keptBytes = 0;
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (isInString) {
      if (byte === BACKSLASH) {
        if (depth <= depthMax) kept[keptBytes++] = byte;
        at++;
      } else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth++;
      if (depth === depthMax + 1) kept[keptBytes++] = DIGIT_0;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      depth--;
      if (depth === depthMax) continue;
    }
    if (depth <= depthMax) kept[keptBytes++] = bytes[at]!;
  }
  return kept.subarray(0, keptBytes);
}
