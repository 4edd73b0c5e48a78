/**
 * The time in an event id: its first 48 bits are milliseconds since 1970 (UUIDv7). Ids increase
 * over the whole log, so an id made from a time is a position: `after` need not be an event.
 */

const MS_MAX = 2 ** 48 - 1;

/** When an event was committed, in milliseconds since 1970. */
export function timeOf(eventId: string): number {
  return parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16);
}

/** A position before every event of this millisecond and after all earlier ones. */
export function positionAt(ms: number): string {
  const hex = Math.min(Math.max(0, Math.floor(ms)), MS_MAX).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** Minutes that a picture of events per minute has. */
export const MINUTES = 60;
const MINUTE_MS = 60_000;

/** The minute since 1970 of a time. */
export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS);
}

/** The first millisecond of a minute. */
export function startOf(minute: number): number {
  return minute * MINUTE_MS;
}
