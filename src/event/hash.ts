/** SHA-256 with node:crypto; a WebCrypto call costs ten times as much as hashing an event. */
import { hash } from "node:crypto";

/** SHA-256 of bytes, or of a string in UTF-8, as 64 lowercase hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

const SHA256_HEX = /^[0-9a-f]{64}$/;

/** Whether a value is 64 lowercase hex digits. */
export function isSha256Hex(value: unknown): value is string {
  return typeof value === "string" && SHA256_HEX.test(value);
}
