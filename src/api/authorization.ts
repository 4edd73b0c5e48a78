/**
 * Bearer tokens (RFC 6750). Digests are compared in constant time, so that timing reveals neither
 * characters nor length of the token.
 */
import { Buffer } from "node:buffer";
import { hash, timingSafeEqual } from "node:crypto";

/** Returns whether a request is authorized, given its `Authorization` header. */
export type Authorizer = (authorization: string | null) => boolean;

const BEARER = /^bearer +/i;

/** Creates the check for a token. An empty token authorizes every request. */
export function createAuthorizer(token: string): Authorizer {
  if (token === "") return () => true;
  // Header values are Latin-1, one character per byte.
  const wanted = new DigestText().of(Buffer.from(token).toString("latin1"));
  const given = new DigestText();
  return (authorization) => {
    const scheme = authorization === null ? null : BEARER.exec(authorization);
    if (authorization === null || scheme === null) return false;
    return timingSafeEqual(given.of(authorization.slice(scheme[0].length)), wanted);
  };
}

const encoder = new TextEncoder();

/** SHA-256 in hexadecimal, the cheapest form in both runtimes. */
class DigestText {
  readonly #bytes: Uint8Array = new Uint8Array(64);

  /** Valid until the next call. */
  of(text: string): Uint8Array {
    encoder.encodeInto(hash("sha256", text, "hex"), this.#bytes);
    return this.#bytes;
  }
}
