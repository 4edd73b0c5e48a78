import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  type EventFilter,
  isHeaderLine,
  lineEventId,
  lineMatcher,
  lineMembers,
} from "../../../src/log/line/stored_line.ts";
import { EVENT_BYTES_MIN } from "../../../src/limits.ts";
import { type EventOptions, preparedEvent, sealEvent } from "../../support/prepared.ts";

const EVENT_ID = "019b76da-a800-7001-8203-040506070809";

function storedLine(source: string, event: EventOptions): Buffer {
  const observedAt = "2026-01-01T00:00:00.000Z";
  const identity = { source, batchId: "b", observedAt };
  return Buffer.from(sealEvent(identity, preparedEvent(event), EVENT_ID).line + "\n");
}

/** Strings that mislead a search for quotes and commas. */
const HARD_TEXTS = [
  "1",
  "11",
  '"',
  '","',
  '","kind":"',
  '","kind":"x","',
  "\\",
  "\\\\",
  '\\"',
  "a\\",
  "\n",
  "\u0000\u001f\u007f",
  "ä",
  "a\u0308",
  "€ 𝄞 👩‍👩‍👧",
  "\u2028",
  '{"commit":',
  "/",
  "<script>",
  " ",
];

test("lineEventId() and lineMembers() read a line at any offset", () => {
  const line = storedLine("shop.eu-1", { stream: "orders_2", recordKey: '","stream":"x' });
  for (const offset of [0, 7]) {
    const bytes = Buffer.concat([Buffer.alloc(offset, "\n"), line, line]);
    assert.equal(lineEventId(bytes, offset), EVENT_ID);
    assert.deepEqual(lineMembers(bytes, offset).slice(0, 2), ["shop.eu-1", "orders_2"]);
  }
});

test("lineMatcher() is null for a filter that matches every event", () => {
  assert.equal(lineMatcher({}), null);
});

test("lineMatcher() compares record keys and kinds exactly, with any characters", () => {
  for (const text of HARD_TEXTS) {
    const byKey = storedLine("shop", { recordKey: text });
    const byKind = storedLine("shop", { kind: text });
    for (const wanted of HARD_TEXTS) {
      const expected = wanted === text;
      const label = JSON.stringify([text, wanted]);
      assert.equal(lineMatcher({ recordKey: wanted })!(byKey, 0), expected, `key ${label}`);
      assert.equal(lineMatcher({ kind: wanted })!(byKind, 0), expected, `kind ${label}`);
    }
  }
});

test("lineMatcher() accepts every combination of members", () => {
  const event = { source: "shop", stream: "orders", recordKey: 'k"1', kind: "upserted" };
  const line = storedLine(event.source, event);
  const others = { source: "sho", stream: "order", recordKey: 'k"', kind: "upsert" };
  const members = ["source", "stream", "recordKey", "kind"] as const;
  for (let chosen = 1; chosen < 16; chosen++) {
    const filter: EventFilter = {};
    const names = members.filter((_, bit) => chosen & (1 << bit));
    for (const name of names) filter[name] = event[name];
    assert.ok(lineMatcher(filter)!(line, 0), JSON.stringify(filter));
    for (const name of names) {
      for (const other of [others[name], event[name] + "x", "x" + event[name], ""]) {
        const different = { ...filter, [name]: other };
        assert.ok(!lineMatcher(different)!(line, 0), JSON.stringify(different));
      }
    }
  }
});

test("lineMatcher() does not match past the end of the buffer", () => {
  const line = storedLine("shop", { recordKey: "1" });
  const cut = line.subarray(0, line.indexOf('","kind"'));
  assert.ok(!lineMatcher({ recordKey: "1" })!(cut, 0));
});

test("no stored event has fewer than EVENT_BYTES_MIN bytes", () => {
  const least = { stream: "s", recordKey: "k", kind: "k", payload: 0 };
  const identity = { source: "s", batchId: "b", observedAt: "2026-01-01T00:00:00.000Z" };
  const { line } = sealEvent(identity, preparedEvent(least), EVENT_ID);
  assert.ok(Buffer.byteLength(line) + 1 >= EVENT_BYTES_MIN, line);
});

test("isHeaderLine() recognizes a header line by its start", () => {
  const event = storedLine("shop", {});
  const bytes = Buffer.concat([event, Buffer.from('{"commit":{}}\n')]);
  assert.ok(!isHeaderLine(bytes, 0));
  assert.ok(isHeaderLine(bytes, event.length));
});
