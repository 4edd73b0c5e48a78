/** Bearer tokens (RFC 6750). Comparing digests in constant time also hides the token's length. */
import { Buffer } from "node:buffer";
import { hash, timingSafeEqual } from "node:crypto";

const BEARER = /^bearer +/i;

/** Creates a check of `Authorization` headers. An empty token authorizes every request. */
export function createAuthorizer(token: string): (authorization: string | null) => boolean {
  if (token === "") return () => true;
  // Header values are Latin-1, one character per byte.
  const wanted = digestText(Buffer.from(token).toString("latin1"));
  return (authorization) => {
    const scheme = BEARER.exec(authorization ?? "");
    if (scheme === null) return false;
    return timingSafeEqual(digestText(scheme.input.slice(scheme[0].length)), wanted);
  };
}

/** Returns the SHA-256 as hex digits, which `hash()` produces faster than raw bytes. */
function digestText(text: string): Uint8Array {
  return Buffer.from(hash("sha256", text, "hex"), "latin1");
}
