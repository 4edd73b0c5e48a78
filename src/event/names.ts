/**
 * Validates the names in a batch. Each function returns null if a name is valid, otherwise an error
 * message to append to the member's name, such as `must not be empty`. Sizes are in UTF-8 bytes.
 */
import { Buffer } from "node:buffer";
import { BATCH_ID_BYTES_MAX, NAME_BYTES_MAX, RECORD_KEY_BYTES_MAX } from "../limits.ts";
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "./system_names.ts";

const NAME_PATTERN = /^[a-z0-9_][a-z0-9_.-]*$/;

/** Checks a `stream`, or the syntax of a source. */
export function nameFault(text: string): string | null {
  if (!NAME_PATTERN.test(text)) return "must match [a-z0-9_][a-z0-9_.-]*";
  return lengthFault(text, NAME_BYTES_MAX);
}

/** Checks a source that a client writes to. */
export function sourceFault(text: string): string | null {
  return text === SYSTEM_SOURCE
    ? `must not be the reserved name ${SYSTEM_SOURCE}`
    : nameFault(text);
}

export function kindFault(text: string): string | null {
  return lengthFault(text, NAME_BYTES_MAX);
}

export function recordKeyFault(text: string): string | null {
  return lengthFault(text, RECORD_KEY_BYTES_MAX);
}

export function batchIdFault(text: string): string | null {
  if (text.startsWith(RESERVED_BATCH_PREFIX)) {
    return `must not start with the reserved prefix ${RESERVED_BATCH_PREFIX}`;
  }
  return lengthFault(text, BATCH_ID_BYTES_MAX);
}

function lengthFault(text: string, limitBytes: number): string | null {
  if (text.length === 0) return "must not be empty";
  // A UTF-16 code unit takes at most three bytes in UTF-8.
  if (text.length * 3 <= limitBytes) return null;
  const sizeBytes = Buffer.byteLength(text);
  return sizeBytes <= limitBytes ? null : `is ${sizeBytes} bytes long, more than ${limitBytes}`;
}
