/** Verifies the hashes of a committed event, using only WebCrypto so that it runs anywhere. */
import { canonicalize } from "./json/canonical_json.ts";
import type { CommittedEvent } from "./wire_types.ts";

export type { CommittedEvent } from "./wire_types.ts";

/** Result of verifying an event. */
export interface EventVerification {
  /** Whether `content_hash` matches the payload. */
  contentHash: boolean;
  /** Whether `event_hash` matches the envelope, which has `content_hash` but not the payload. */
  eventHash: boolean;
}

/**
 * Recomputes both hashes of an event. The event is unaltered only if both match.
 *
 * @throws {TypeError} if the payload or a member has no canonical JSON form.
 */
export async function verifyEvent(event: CommittedEvent): Promise<EventVerification> {
  const { batch_id, content_hash, event_id, kind, observed_at, record_key, source, stream } = event;
  const named = { batch_id, content_hash, event_id, kind, observed_at, record_key, source, stream };
  const { occurred_at } = event;
  const envelope = occurred_at === undefined ? named : { ...named, occurred_at };
  const [contentHash, eventHash] = await Promise.all([
    webCryptoSha256(canonicalize(event.payload)),
    webCryptoSha256(canonicalize(envelope)),
  ]);
  return { contentHash: contentHash === content_hash, eventHash: eventHash === event.event_hash };
}

async function webCryptoSha256(text: string): Promise<string> {
  const digest = new Uint8Array(
    await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)),
  );
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
