import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  type BatchEntry,
  closesAsHeader,
  type Commit,
  encodeCommit,
  hashFrame,
  parseCommitHeader,
} from "../../../src/log/wal/commit_frame.ts";

const HEX = "0123456789abcdef".repeat(4);
const BODY = Buffer.from('{"event_id":"x"}\n');
const ENTRY: BatchEntry = {
  batch_digest: HEX,
  batch_id: 'ü"\\\u0001{"commit":',
  events: 1,
  first_event_id: "019b76da-a800-7001-8203-040506070809",
  last_event_id: "019b76da-a800-7001-8203-040506070809",
  source: "shop",
};
const COMMIT: Commit = { batches: [ENTRY], bytes: BODY.length, head: HEX };

function headerLine(commit: unknown, suffix = `,"sha256":"${HEX}"}`): Buffer {
  return Buffer.from(`{"commit":${JSON.stringify(commit)}${suffix}`);
}

test("parseCommitHeader() parses what encodeCommit() wrote", () => {
  const plain = { ...ENTRY, batch_id: "!#$[]~ 1" };
  const commits: Record<string, BatchEntry[]> = {
    "a name with escapes": [ENTRY],
    "a plain name": [plain],
    "a name that is not ASCII": [{ ...plain, batch_id: "ü" }],
    "an empty name": [{ ...plain, batch_id: "" }],
    "a large batch": [{ ...plain, events: 1_234_567_890 }],
    "several batches": [plain, ENTRY],
  };
  for (const [label, batches] of Object.entries(commits)) {
    const commit = { ...COMMIT, batches };
    const frame = encodeCommit(commit, [BODY.subarray(0, 1), BODY.subarray(1)]);
    const line = frame.subarray(0, frame.length - BODY.length);
    assert.ok(frame.subarray(line.length).equals(BODY));
    const header = parseCommitHeader(line, 0, line.length - 1);
    assert.ok(header, label);
    assert.deepEqual(header.commit, commit, label);
    assert.equal(hashOf(line, BODY), header.sha256, label);
  }
});

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

test("closesAsHeader() recognizes a header line by its end", () => {
  const header = headerLine(COMMIT);
  const event = Buffer.from(`{"payload":{"sha256":"${HEX}"},"event_hash":"${HEX}"}`);
  assert.ok(closesAsHeader(header, header.length));
  assert.ok(!closesAsHeader(header, header.length - 1));
  assert.ok(!closesAsHeader(event, event.length));
  assert.ok(!closesAsHeader(header.subarray(-20), 20));
});

function hashOf(line: Uint8Array, body: Uint8Array): string {
  return hashFrame(Buffer.concat([line, body]), line.length - 1);
}
