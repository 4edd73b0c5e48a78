/** Parses human-readable times in the local time zone. */

const UNITS_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses `90m`, `2d` (ago), `14:00`, `yesterday 14:00`, `2026-01-31`, `2026-01-31 14:00` or a
 * timestamp with a time zone, such as `2026-01-31T14:00:00Z`.
 *
 * @returns Unix milliseconds; null if `text` is in none of these formats.
 */
export function parseSince(text: string, nowMs: number): number | null {
  const ago = /^(\d{1,9})([smhd])$/.exec(text);
  if (ago !== null) return nowMs - Number(ago[1]) * UNITS_MS[ago[2]!]!;
  const day = /^(?:(today|yesterday) ?)?(?:(\d?\d):(\d\d))?$/.exec(text);
  if (day !== null && text !== "") {
    const [, name, hour = "0", minute = "0"] = day;
    const date = new Date(nowMs);
    if (Number(hour) > 23 || Number(minute) > 59) return null;
    if (name === "yesterday") date.setDate(date.getDate() - 1);
    return date.setHours(Number(hour), Number(minute), 0, 0);
  }
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null;
  // Date.parse() would interpret a bare date as UTC.
  const ms = Date.parse(text.length === 10 ? `${text}T00:00` : text);
  return Number.isNaN(ms) ? null : ms;
}
