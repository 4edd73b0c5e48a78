/** Signs webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com). */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";

const SECRET = /^whsec_((?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/;
/** Sizes of a key that the specification allows. */
const KEY_BYTES_MIN = 24;
const KEY_BYTES_MAX = 64;

/**
 * Parses one or more secrets, separated by white space. While a secret is being replaced, each
 * webhook is signed with both.
 * @throws {Error} which does not quote the secret.
 */
export function parseSecrets(text: string): Buffer[] {
  return text.trim().split(/\s+/).map((secret) => {
    const key = Buffer.from(SECRET.exec(secret)?.[1] ?? "", "base64");
    if (key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX) return key;
    throw new Error(
      `a secret must be whsec_ and the base64 of ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes`,
    );
  });
}

/** @param timestampS Unix time of the attempt in seconds. @returns the headers that sign it. */
export function signatureHeaders(
  keys: Buffer[],
  id: string,
  timestampS: number,
  body: string,
): Record<string, string> {
  const signatures = keys.map((key) =>
    `v1,${createHmac("sha256", key).update(`${id}.${timestampS}.${body}`).digest("base64")}`
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestampS),
    "webhook-signature": signatures.join(" "),
  };
}
