/** Whether the log at hand is the one that an event came from. */
import type { EventLogClient } from "../../mod.ts";

/** Digits at the end of an id that count within the bits that are free in a UUIDv7. */
const COUNTED_DIGITS = 12;

/** Whether the log has an event of this id. An id of zeros at its end is taken on trust. */
export async function isInLog(
  client: EventLogClient,
  eventId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const after = idBefore(eventId);
  if (after === null) return true;
  for await (const { events } of client.replayPages({ after, limit: 1, signal })) {
    return events[0]?.event_id === eventId;
  }
  return false;
}

/** The id one below; `after` need not be that of an event. */
function idBefore(eventId: string): string | null {
  const digits = eventId.slice(-COUNTED_DIGITS);
  const number = parseInt(digits, 16);
  if (number === 0) return null;
  const before = (number - 1).toString(16).padStart(COUNTED_DIGITS, "0");
  return eventId.slice(0, -COUNTED_DIGITS) + before;
}
