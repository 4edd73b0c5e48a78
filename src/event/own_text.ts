import { Buffer } from "node:buffer";

/** Copies a well-formed substring, which would otherwise retain the whole string. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
