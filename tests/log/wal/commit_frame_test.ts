import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  type BatchEntry,
  type Commit,
  parseCommitHeader,
} from "../../../src/log/wal/commit_frame.ts";

const HEX = "0123456789abcdef".repeat(4);
const ENTRY: BatchEntry = {
  batch_digest: HEX,
  batch_id: "b",
  events: 1,
  first_event_id: "019b76da-a800-7001-8203-040506070809",
  last_event_id: "019b76da-a800-7001-8203-040506070809",
  source: "shop",
};
const COMMIT: Commit = { batches: [ENTRY], bytes: 17, head: HEX };

function headerLine(commit: unknown, suffix = `,"sha256":"${HEX}"}`): Buffer {
  return Buffer.from(`{"commit":${JSON.stringify(commit)}${suffix}`);
}

test("parseCommitHeader() returns null for a line that is not a header", () => {
  const cases: Record<string, Buffer> = {
    "an empty line": Buffer.from(""),
    "an event": Buffer.from(`{"event_id":"","event_hash":"${HEX}"}`),
    "only prefix and suffix": Buffer.from(`{"commit":,"sha256":"${HEX}"}`),
    "null": headerLine(null),
    "an array": headerLine([]),
    "an unclosed object": Buffer.from(`{"commit":{"batches":[],"bytes":0,"sha256":"${HEX}"}`),
    "no batches": headerLine({ bytes: 0, head: HEX }),
    "a batch that is null": headerLine({ ...COMMIT, batches: [null] }),
    "a numeric batch id": headerLine({ ...COMMIT, batches: [{ ...ENTRY, batch_id: 1 }] }),
    "a null source": headerLine({ ...COMMIT, batches: [{ ...ENTRY, source: null }] }),
    "a batch without events": headerLine({ ...COMMIT, batches: [{ ...ENTRY, events: 0 }] }),
    "a fractional event count": headerLine({ ...COMMIT, batches: [{ ...ENTRY, events: 1.5 }] }),
    "an uppercase first id": headerLine({
      ...COMMIT,
      batches: [{ ...ENTRY, first_event_id: ENTRY.first_event_id.toUpperCase() }],
    }),
    "an invalid last id": headerLine({
      ...COMMIT,
      batches: [{ ...ENTRY, last_event_id: "" }],
    }),
    "a short digest": headerLine({ ...COMMIT, batches: [{ ...ENTRY, batch_digest: "00" }] }),
    "a negative size": headerLine({ ...COMMIT, bytes: -1 }),
    "a size as a string": headerLine({ ...COMMIT, bytes: "1" }),
    "batches without bytes": headerLine({ ...COMMIT, bytes: 0 }),
    "bytes without batches": headerLine({ ...COMMIT, batches: [] }),
    "an uppercase head": headerLine({ ...COMMIT, head: HEX.toUpperCase() }),
    "an uppercase sha256": headerLine(COMMIT, `,"sha256":"${HEX.toUpperCase()}"}`),
    "a short sha256": headerLine(COMMIT, `,"sha256":"${HEX.slice(1)}"}`),
    "a different name for the sha256": headerLine(COMMIT, `,"sha257":"${HEX}"}`),
    "a wrong line ending": headerLine(COMMIT, `,"sha256":"${HEX}"]`),
    "a leading space": Buffer.concat([Buffer.from(" "), headerLine(COMMIT)]),
  };
  assert.ok(parseCommitHeader(headerLine(COMMIT)));
  for (const [name, line] of Object.entries(cases)) {
    assert.equal(parseCommitHeader(line), null, name);
  }
});
