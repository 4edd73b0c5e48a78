import { Buffer } from "node:buffer";

/** Copies a well-formed substring, which would otherwise keep the original string in memory. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
