/**
 * Timestamps in event ids, whose first 48 bits are Unix milliseconds (UUIDv7). Ids increase across
 * the log and `after` need not be an existing event, so any time can be converted to a position.
 */

const MS_MAX = 2 ** 48 - 1;

/** Returns the commit time of an event in Unix milliseconds. */
export function timeOf(eventId: string): number {
  return parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16);
}

/** Returns a position before all events in this millisecond and after all earlier events. */
export function positionAt(ms: number): string {
  const hex = Math.min(Math.max(0, Math.floor(ms)), MS_MAX).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** Number of minutes shown in the chart of events per minute. */
export const MINUTES = 60;
const MINUTE_MS = 60_000;

/** Minutes from the Unix epoch to a time, rounded down. */
export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS);
}

/** Returns the first millisecond of a minute. */
export function startOf(minute: number): number {
  return minute * MINUTE_MS;
}
