import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { StoredEvent } from "../../../src/log/line/stored_event.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { hostileBatch, pendingFile, splitLines } from "../../support/test_segment.ts";

const HEX = "0123456789abcdef".repeat(4);
const ID = "019b7688-8400-7001-8203-040506070809";
const LINE =
  `{"event_id":"${ID}","source":"shop","stream":"orders","record_key":"k\\"1","kind":"é",` +
  `"occurred_at":"2026-01-01T00:00:00Z","observed_at":"2026-01-01T00:00:00.000Z",` +
  `"payload":{"a":"x"},"content_hash":"${HEX}","batch_id":"b\\\\","event_hash":"${HEX}"}`;

function take(line: string): StoredEvent | null {
  const event = new StoredEvent();
  // Surrounds the line with bytes that must not be read.
  const bytes = Buffer.from(`"}${line}","}`);
  return event.take(bytes, 2, bytes.length - 4) ? event : null;
}

/** The members of a line, parsed, in the order of the line. */
function members(event: StoredEvent): unknown[] {
  const text = (start: number, end: number) => event.bytes.toString("utf8", start, end);
  const parsed = (start: number, end: number) => JSON.parse(`"${text(start, end)}"`);
  const isDated = event.occurredAtStart >= 0;
  return [
    event.eventId,
    parsed(event.sourceStart, event.sourceEnd),
    parsed(event.streamStart, event.streamEnd),
    parsed(event.recordKeyStart, event.recordKeyEnd),
    parsed(event.kindStart, event.kindEnd),
    ...(isDated ? [parsed(event.occurredAtStart, event.occurredAtEnd)] : []),
    parsed(event.observedAtStart, event.observedAtStart + 24),
    JSON.parse(text(event.payloadStart, event.payloadEnd)),
    event.contentHash,
    parsed(event.batchIdStart, event.batchIdEnd),
    event.eventHash,
  ];
}

test(`StoredEvent.take() agrees with a JSON parser on hostile lines (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const batches = Array.from({ length: 300 }, (_, n) => hostileBatch(random, n, 1));
  const { lines } = await pendingFile([batches]);
  const event = new StoredEvent();
  for (const line of splitLines(lines)) {
    assert.ok(event.take(line, 0, line.length - 1), line.toString());
    assert.deepEqual(members(event), Object.values(JSON.parse(line.toString())));
  }
});

const MALFORMED: [string, string][] = [
  ["nothing", ""],
  ["a line truncated at its end", LINE.slice(0, -1)],
  ["a line truncated at its start", LINE.slice(1)],
  ["a space between members", LINE.replace(',"stream"', ', "stream"')],
  ["members out of order", LINE.replace('"kind"', '"kinds"')],
  ["a missing member", LINE.replace(',"kind":"é"', "")],
  ["an empty payload", LINE.replace('{"a":"x"}', "")],
  ["a control character in a string", LINE.replace("orders", "ord\u0001ers")],
  ["a time with two fractional digits", LINE.replace("00:00:00.000Z", "00:00:00.00Z")],
  ["an unterminated string", LINE.replace("orders", "orders\\")],
  ["only the ends of a line", `{"event_id":"${ID}","event_hash":"${HEX}"}`],
];

test("StoredEvent.take() rejects anything but a stored event", () => {
  for (const [name, line] of MALFORMED) assert.equal(take(line), null, name);
});

const BROKEN_LINES: [string, string][] = [
  ...MALFORMED,
  ["an LF in a string", LINE.replace("orders", "ord\ners")],
  ["an LF after a backslash", LINE.replace("orders", "ord\\\ners")],
  ["an LF in the payload", LINE.replace('"x"', '"\n"')],
];

test("StoredEvent.takeLine() takes a line up to its LF, and nothing else", () => {
  const event = new StoredEvent();
  const lines = Buffer.from(`${LINE}\n${LINE}\n`);
  const middle = event.takeLine(lines, 0);
  assert.equal(middle, lines.length / 2);
  assert.equal(event.takeLine(lines, middle), lines.length);
  assert.deepEqual(members(event), members(take(LINE)!));
  assert.equal(event.takeLine(lines, lines.length), 0, "the end");
  assert.equal(event.takeLine(lines.subarray(0, -1), middle), 0, "no LF");
  for (const [name, line] of BROKEN_LINES) {
    assert.equal(event.takeLine(Buffer.from(`${line}\n${LINE}\n`), 0), 0, name);
  }
});

test(`StoredEvent.take() handles any input and never reads past its ends (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const event = new StoredEvent();
  for (let run = 0; run < 3000; run++) {
    const bytes = Buffer.from(LINE);
    bytes[random.below(bytes.length)] = random.below(256);
    const start = random.below(4);
    const end = bytes.length - random.below(4);
    if (!event.take(bytes, start, end)) continue;
    assert.ok(event.eventIdStart > start && event.eventHashStart < end);
    assert.ok(event.payloadStart < event.payloadEnd);
  }
});
