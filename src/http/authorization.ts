/**
 * Bearer tokens (RFC 6750). The token is compared by digest in constant time, so that neither its
 * bytes nor its length can be measured from outside.
 */
import { Buffer } from "node:buffer";
import { hash, timingSafeEqual } from "node:crypto";

/** Whether a request may pass, by the value of its `Authorization` header. */
export type Authorizer = (authorization: string | null) => boolean;

const BEARER = /^bearer +/i;

/** With an empty token every request passes, whatever it carries. */
export function createAuthorizer(token: string): Authorizer {
  if (token === "") return () => true;
  const wanted = hash("sha256", token, "buffer");
  return (authorization) => {
    const scheme = authorization === null ? null : BEARER.exec(authorization);
    if (authorization === null || scheme === null) return false;
    // Header values come as one character for each byte.
    const given = Buffer.from(authorization.slice(scheme[0].length), "latin1");
    return timingSafeEqual(hash("sha256", given, "buffer"), wanted);
  };
}
