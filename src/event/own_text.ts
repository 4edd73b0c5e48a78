import { Buffer } from "node:buffer";

/** Detaches a well-formed string: a substring keeps the whole string alive. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
