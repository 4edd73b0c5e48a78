/**
 * Rules of the names in a batch. Each rule returns null, or what is wrong as the rest of a sentence
 * that begins with the member's name: `must not be empty`. Sizes are in UTF-8 bytes.
 */
import { BATCH_ID_BYTES_MAX, NAME_BYTES_MAX, RECORD_KEY_BYTES_MAX } from "../limits.ts";
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "./system_names.ts";
import { utf8Bytes } from "./json/utf8.ts";

const NAME_PATTERN = /^[a-z0-9_][a-z0-9_.-]*$/;

/** Rule of `stream`, and of a source's spelling. */
export function nameFault(text: string): string | null {
  if (!NAME_PATTERN.test(text)) return "must match [a-z0-9_][a-z0-9_.-]*";
  return lengthFault(text, NAME_BYTES_MAX);
}

/** Rule of a source that clients may write to. */
export function sourceFault(text: string): string | null {
  return text === SYSTEM_SOURCE
    ? `must not be the reserved name ${SYSTEM_SOURCE}`
    : nameFault(text);
}

/** Rule of `kind`. */
export function kindFault(text: string): string | null {
  return lengthFault(text, NAME_BYTES_MAX);
}

/** Rule of `record_key`. */
export function recordKeyFault(text: string): string | null {
  return lengthFault(text, RECORD_KEY_BYTES_MAX);
}

/** Rule of a `batch_id` that clients may use. */
export function batchIdFault(text: string): string | null {
  if (text.startsWith(RESERVED_BATCH_PREFIX)) {
    return `must not start with the reserved prefix ${RESERVED_BATCH_PREFIX}`;
  }
  return lengthFault(text, BATCH_ID_BYTES_MAX);
}

function lengthFault(text: string, limitBytes: number): string | null {
  if (text.length === 0) return "must not be empty";
  // A UTF-16 code unit takes one to three bytes of UTF-8.
  if (text.length * 3 <= limitBytes) return null;
  const sizeBytes = utf8Bytes(text);
  return sizeBytes <= limitBytes ? null : `has ${sizeBytes} bytes, more than ${limitBytes}`;
}
