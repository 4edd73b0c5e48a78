/** Validates `occurred_at` and formats `observed_at`, both UTC timestamps. */

const SHAPE =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?Z$/;

/** Days of each month in a common year. */
const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Checks an `occurred_at`: an RFC 3339 section 5.6 timestamp with `T` and `Z`, up to nine
 * fractional digits, no leap seconds, years 0000 to 9999.
 *
 * @returns null if valid, otherwise the end of a message that begins with the member's name.
 */
export function occurredAtFault(text: string): string | null {
  if (!SHAPE.test(text)) {
    return "must be a UTC time YYYY-MM-DDTHH:MM:SSZ with at most 9 fractional digits and no leap " +
      "second";
  }
  const month = Number(text.slice(5, 7));
  const day = Number(text.slice(8, 10));
  if (day <= MONTH_DAYS[month - 1]!) return null;
  const isLeapDay = month === 2 && day === 29 && isLeapYear(Number(text.slice(0, 4)));
  return isLeapDay ? null : `has an invalid day of the month: ${day}`;
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/**
 * Formats a time as `YYYY-MM-DDTHH:MM:SS.mmmZ`.
 * @param timeMs Unix milliseconds, in years 0000 to 9999.
 */
export function formatTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
