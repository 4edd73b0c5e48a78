/**
 * Bearer tokens (RFC 6750). The token is compared by digest in constant time, so that neither its
 * characters nor its length can be measured from outside.
 */
import { Buffer } from "node:buffer";
import { hash, timingSafeEqual } from "node:crypto";

/** Whether a request may pass, by the value of its `Authorization` header. */
export type Authorizer = (authorization: string | null) => boolean;

const BEARER = /^bearer +/i;

/** With an empty token every request passes, whatever it carries. */
export function createAuthorizer(token: string): Authorizer {
  if (token === "") return () => true;
  // A header value comes as one character for each byte, so the token is spelled like that too.
  const wanted = new DigestText().of(Buffer.from(token).toString("latin1"));
  const given = new DigestText();
  return (authorization) => {
    const scheme = authorization === null ? null : BEARER.exec(authorization);
    if (authorization === null || scheme === null) return false;
    return timingSafeEqual(given.of(authorization.slice(scheme[0].length)), wanted);
  };
}

const encoder = new TextEncoder();

/** SHA-256 in hexadecimal, as bytes: the form that costs least in both runtimes. */
class DigestText {
  readonly #bytes: Uint8Array = new Uint8Array(64);

  /** Valid until the next call. */
  of(text: string): Uint8Array {
    encoder.encodeInto(hash("sha256", text, "hex"), this.#bytes);
    return this.#bytes;
  }
}
