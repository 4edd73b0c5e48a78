/**
 * The browser-compatible part of the library: canonical JSON, event verification and protocol
 * types. Uses no runtime-specific API.
 *
 * @example Verify an event from another system
 * ```ts
 * import { type CommittedEvent, verifyEvent } from "@ground/service";
 *
 * export async function assertUnaltered(event: CommittedEvent): Promise<void> {
 *   const { contentHash, eventHash } = await verifyEvent(event);
 *   if (!contentHash || !eventHash) throw new Error(`event ${event.event_id} was altered`);
 * }
 * ```
 *
 * @module
 */
export { ERROR_STATUS, type ErrorCode, type EventFault } from "./src/event/api_error.ts";
export { canonicalize } from "./src/event/json/canonical_json.ts";
export type {
  CommittedEvent,
  FollowEndReason,
  Receipt,
  RetirementReceipt,
  StreamPrecondition,
  StreamSummary,
  SubmittedEvent,
} from "./src/event/wire_types.ts";
export { type EventVerification, verifyEvent } from "./src/event/verify_event.ts";
