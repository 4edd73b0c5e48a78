/** SHA-256 with node:crypto; a WebCrypto call costs ten times as much as hashing an event. */
import { hash } from "node:crypto";

/** Greater than the value of any hex digit. */
export const NO_DIGIT = 0x10;
/** Maps a byte to the value of the lowercase hex digit that it encodes, or to NO_DIGIT. */
export const DIGIT_VALUES: Uint8Array = new Uint8Array(0x100).fill(NO_DIGIT);
for (let value = 0; value < 0x10; value++) {
  DIGIT_VALUES[value.toString(16).charCodeAt(0)] = value;
}

/** Returns the SHA-256 of bytes, or of a string in UTF-8, as 64 lowercase hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

const SHA256_HEX = /^[0-9a-f]{64}$/;

/** Whether a value is 64 lowercase hex digits. */
export function isSha256Hex(value: unknown): value is string {
  return typeof value === "string" && SHA256_HEX.test(value);
}
