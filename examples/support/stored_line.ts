/** Restores the stored bytes of a parsed event. */
import { canonicalize, type CommittedEvent } from "../../mod.ts";

/**
 * The line of an event, without LF: members in the log's order, the payload canonical.
 * `JSON.stringify` alone does not suffice: objects list integer-like names first.
 */
export function storedLine(event: CommittedEvent): string {
  const { payload, content_hash, batch_id, event_hash, ...front } = event;
  const { event_id, source, stream, record_key, kind, occurred_at, observed_at } = front;
  const before = { event_id, source, stream, record_key, kind, occurred_at, observed_at };
  const after = { content_hash, batch_id, event_hash };
  const members = (part: object) => JSON.stringify(part).slice(1, -1);
  return `{${members(before)},"payload":${canonicalize(payload)},${members(after)}}`;
}
