/**
 * The part of the library that needs no service: canonical JSON, the check of events, and the
 * shapes of the wire. Nothing here imports from the runtime it runs in, so that it also works in a
 * browser.
 *
 * @example Check an event that came from elsewhere
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
export { canonicalize, DepthError } from "./src/event/json/canonical_json.ts";
export type {
  CommittedEvent,
  FollowEndReason,
  Receipt,
  RetirementReceipt,
  StreamPrecondition,
  StreamSummary,
  SubmittedEvent,
} from "./src/event/types.ts";
export { type EventVerification, verifyEvent } from "./src/event/verify_event.ts";
