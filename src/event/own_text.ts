import { Buffer } from "node:buffer";

/** The same well-formed text in memory of its own: a part of another text holds on to all of it. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
