/** Validates `occurred_at` and formats `observed_at`, both UTC timestamps. */

const SHAPE =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?Z$/;

/** Every month has at least this many days. */
const MONTH_DAYS_MIN = 28;

/**
 * Checks an `occurred_at`: an RFC 3339 section 5.6 timestamp with `T` and `Z`, up to nine
 * fractional digits, no leap seconds, years 0000 to 9999. Returns an error message or null.
 */
export function occurredAtFault(text: string): string | null {
  if (!SHAPE.test(text)) {
    return "must be a UTC time YYYY-MM-DDTHH:MM:SSZ with at most 9 fractional digits and no leap " +
      "second";
  }
  const day = Number(text.slice(8, 10));
  // `Date` rejects a day that the month does not have, or rolls over into the next month.
  const isValid = day <= MONTH_DAYS_MIN || new Date(text.slice(0, 10)).getUTCDate() === day;
  return isValid ? null : `has an invalid day of the month: ${day}`;
}

/** Formats Unix milliseconds as `YYYY-MM-DDTHH:MM:SS.mmmZ`, in years 0000 to 9999. */
export function formatTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
