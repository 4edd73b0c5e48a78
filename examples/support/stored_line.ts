/** An event as the log has it: the same bytes, also where it was parsed on the way. */
import { canonicalize, type CommittedEvent } from "../../mod.ts";

/**
 * The line of an event, without its line feed: members in the log's order, the payload canonical.
 * `JSON.stringify` would not do: an object lists members that look like numbers before others.
 */
export function storedLine(event: CommittedEvent): string {
  const { payload, content_hash, batch_id, event_hash, ...front } = event;
  const { event_id, source, stream, record_key, kind, occurred_at, observed_at } = front;
  const before = { event_id, source, stream, record_key, kind, occurred_at, observed_at };
  const after = { content_hash, batch_id, event_hash };
  const members = (part: object) => JSON.stringify(part).slice(1, -1);
  return `{${members(before)},"payload":${canonicalize(payload)},${members(after)}}`;
}
