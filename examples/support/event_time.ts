/** Timestamps in event ids, whose first 48 bits are Unix milliseconds (UUIDv7). */

/** Returns the commit time of an event in Unix milliseconds. */
export function timeOf(eventId: string): number {
  return parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16);
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
