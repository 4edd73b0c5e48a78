/** Events split into lines without being parsed. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ProtocolError } from "../../src/client/errors.ts";
import { type EventLine, linesOf, parseLines } from "../../src/client/event_lines.ts";
import { eventId } from "./support/fake_service.ts";

/** A stored line. Its payload is canonical. */
function stored(number: number, payload: string): string {
  const hash = "0".repeat(64);
  return `{"event_id":"${eventId(number)}","source":"s","stream":"t","record_key":"k","kind":"u",` +
    `"observed_at":"2026-01-01T00:00:00.000Z","payload":${payload},"content_hash":"${hash}",` +
    `"batch_id":"b","event_hash":"${hash}"}`;
}

const IMITATION = `{"batch_id":"b","event_id":"${eventId(9)}","source":"s","stream":"t"}`;
const PAYLOADS = [
  "1",
  `[${IMITATION},{"event_id":"${eventId(8)}","source":"s","stream":"t"},${IMITATION}]`,
  JSON.stringify('"events":[' + stored(5, "1") + "," + stored(6, "2")),
  `"${"é".repeat(400)}"`,
];

function parse(body: string): { events: EventLine[]; next_after: string } {
  return parseLines(Buffer.from(body)) as { events: EventLine[]; next_after: string };
}

for (const blanks of ["", "   "]) {
  for (const opening of ['{"events":[', '{"type":"events","phase":"live","events":[']) {
    test(`parseLines() copies the events after ${opening} with ${blanks.length} blanks`, () => {
      const lines = PAYLOADS.map((payload, number) => stored(number, payload));
      const page = `${opening}${blanks}${lines.join(`${blanks},`)}${blanks}],"next_after":"x"}`;
      const { events, next_after } = parse(page);
      assert.equal(next_after, "x");
      const read = events.map((event) => [event.event_id, linesOf([event]).toString()]);
      assert.deepEqual(read, lines.map((line, number) => [eventId(number), `${line}\n`]));
      assert.equal(linesOf(events.slice(1, 3)).toString(), `${lines[1]}\n${lines[2]}\n`);
    });
  }
}

test("parseLines() accepts a page without events, and refuses an event in another order", () => {
  assert.equal(parse('{"events":[],"next_after":"x"}').events.length, 0);
  assert.equal(parse('{"events":[ ],"next_after":"x"}').events.at(-1), undefined);
  assert.throws(() => parse('{"events":[{"source":"s"}],"next_after":"x"}'), ProtocolError);
});
