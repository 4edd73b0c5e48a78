/** Checks whether a log contains an event. */
import { type EventLogClient, PositionError } from "../../mod.ts";

/** Number of trailing hex digits to decrement. All of them are random bits in the UUIDv7. */
const COUNTED_DIGITS = 12;

/** Whether the log contains this event. An id that ends in 12 zeros is assumed to be in the log. */
export async function isInLog(
  client: EventLogClient,
  eventId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const after = idBefore(eventId);
  if (after === null) return true;
  try {
    for await (const { events } of client.replayPages({ after, limit: 1, signal })) {
      return events[0]?.event_id === eventId;
    }
  } catch (error) {
    if (!(error instanceof PositionError)) throw error;
  }
  return false;
}

/** Returns the preceding id, for use as `after`. No event needs to have this id. */
function idBefore(eventId: string): string | null {
  const digits = eventId.slice(-COUNTED_DIGITS);
  const number = parseInt(digits, 16);
  if (number === 0) return null;
  const before = (number - 1).toString(16).padStart(COUNTED_DIGITS, "0");
  return eventId.slice(0, -COUNTED_DIGITS) + before;
}
