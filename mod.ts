/**
 * The library for connectors and consumers of the durable event log service.
 *
 * It reaches a service over its Unix socket, and checks on the consumer's side what the service
 * returns: the canonical form of payloads and the hashes of events. Everything but
 * {@linkcode unixFetch} works in any runtime with WebCrypto.
 *
 * @example Append a batch; sending the same bytes again is answered as `duplicate`
 * ```ts
 * import { type Receipt, unixFetch } from "@ground/service";
 *
 * const fetch = unixFetch("demo/data/ground.sock");
 * const response = await fetch("/v1/events", {
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({
 *     batch_id: "2026-01-31/1",
 *     source: "crm",
 *     events: [{ stream: "contacts", record_key: "42", kind: "upserted", payload: { name: "Ada" } }],
 *   }),
 * });
 * const receipt: Receipt = await response.json();
 * ```
 *
 * @example Read history and check it
 * ```ts
 * import { type CommittedEvent, unixFetch, verifyEvent } from "@ground/service";
 *
 * const fetch = unixFetch("demo/data/ground.sock");
 * const page = await (await fetch("/v1/events?source=crm")).json();
 * for (const event of page.events as CommittedEvent[]) {
 *   const { contentHash, eventHash } = await verifyEvent(event);
 *   if (!contentHash || !eventHash) throw new Error(`event ${event.event_id} was altered`);
 * }
 * ```
 *
 * @module
 */
export { type Fetch, unixFetch } from "./src/client/unix_fetch.ts";
export { ERROR_STATUS, type ErrorCode, type EventFault } from "./src/event/api_error.ts";
export { canonicalize, DepthError } from "./src/event/canonical_json.ts";
export type { Receipt } from "./src/event/types.ts";
export {
  type CommittedEvent,
  type EventVerification,
  verifyEvent,
} from "./src/event/verify_event.ts";
