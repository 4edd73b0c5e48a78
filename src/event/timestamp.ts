/** UTC timestamps: validation of `occurred_at`, formatting of `observed_at`. */

const SHAPE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z$/;

/**
 * Checks an `occurred_at`: a UTC time of RFC 3339 section 5.6 with `T` and `Z`, up to nine
 * fractional digits, no leap seconds, years 0000 to 9999.
 *
 * @returns null if valid, else a predicate to follow the member's name in a message.
 */
export function occurredAtFault(text: string): string | null {
  if (!SHAPE.test(text)) {
    return "must be a UTC time YYYY-MM-DDTHH:MM:SSZ, with 1 to 9 digits of fraction or none";
  }
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  if (month < 1 || month > 12) return `has no month ${month}`;
  if (day < 1 || day > daysInMonth(year, month)) return `has no day ${day} in its month`;
  const second = twoDigits(text, 17);
  if (twoDigits(text, 11) > 23 || twoDigits(text, 14) > 59) return "has no such time of day";
  if (second > 59) return second === 60 ? "must not be a leap second" : "has no such time of day";
  return null;
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - DIGIT_0) * 10 + text.charCodeAt(at + 1) - DIGIT_0;
}

const DIGIT_0 = 0x30;

function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/**
 * Formats a time as `YYYY-MM-DDTHH:MM:SS.mmmZ`.
 * @param timeMs milliseconds since 1970, in years 0000 to 9999.
 */
export function formatTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
