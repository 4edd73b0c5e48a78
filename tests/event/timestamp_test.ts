import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTimestamp, occurredAtFault } from "../../src/event/timestamp.ts";

const ACCEPTED = [
  "2026-01-02T03:04:05Z",
  "2026-01-02T03:04:05.1Z",
  "2026-01-02T03:04:05.123456789Z",
  "2026-01-02T03:04:05.000Z",
  "2026-12-31T23:59:59.999999999Z",
  "0000-01-01T00:00:00Z",
  "9999-12-31T23:59:59Z",
];

const REFUSED = [
  "",
  "2026-01-02T03:04Z",
  "2026-01-02T03:04:05",
  "2026-01-02t03:04:05Z",
  "2026-01-02T03:04:05z",
  "2026-01-02 03:04:05Z",
  "2026-01-02T03:04:05+00:00",
  "2026-01-02T03:04:05.Z",
  "2026-01-02T03:04:05,1Z",
  "2026-01-02T03:04:05.1234567890Z",
  "2026-01-02T03:04:05Z ",
  "2026-01-02T03:04:05Z\n",
  "+2026-01-02T03:04:05Z",
  "12026-01-02T03:04:05Z",
  "2026-1-02T03:04:05Z",
  "\u0662026-01-02T03:04:05Z",
  "2026-13-02T03:04:05Z",
  "2026-01-00T03:04:05Z",
  "2026-01-02T24:00:00Z",
  "2026-01-02T03:60:05Z",
  "2026-01-02T03:04:60Z",
  "2016-12-31T23:59:60Z",
];

test("occurredAtFault() accepts UTC times with up to nine fractional digits", () => {
  for (const text of ACCEPTED) assert.equal(occurredAtFault(text), null, text);
});

test("occurredAtFault() rejects other formats, offsets, leap seconds and invalid dates", () => {
  for (const text of REFUSED) assert.equal(typeof occurredAtFault(text), "string", text);
});

test("occurredAtFault() agrees with Date on the days of every month", () => {
  const pad = (value: number) => String(value).padStart(2, "0");
  for (const year of [0, 4, 100, 400, 1900, 2000, 2023, 2024, 2100, 9999]) {
    for (let month = 1; month <= 12; month++) {
      for (let day = 1; day <= 31; day++) {
        const text = `${String(year).padStart(4, "0")}-${pad(month)}-${pad(day)}T00:00:00Z`;
        const isReal = new Date(text).getUTCMonth() === month - 1;
        assert.equal(occurredAtFault(text) === null, isReal, text);
      }
    }
  }
});

test("formatTimestamp() writes milliseconds with three digits", () => {
  assert.equal(formatTimestamp(0), "1970-01-01T00:00:00.000Z");
  assert.equal(formatTimestamp(1_767_323_045_007), "2026-01-02T03:04:05.007Z");
  assert.equal(occurredAtFault(formatTimestamp(Date.now())), null);
});
