import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import {
  type BatchEntry,
  type Commit,
  encodeCommitHeader,
} from "../../../src/log/wal/commit_frame.ts";
import { PlainHeaderReader } from "../../../src/log/wal/plain_header.ts";

const ENTRY: BatchEntry = {
  batch_digest: "0123456789abcdef".repeat(4),
  batch_id: "!#$[]~ 1",
  events: 12,
  first_event_id: "019b76da-a800-7001-8203-040506070809",
  last_event_id: "019b76da-a800-7001-b203-04050607080f",
  source: "shop.1",
};
const COMMIT: Commit = { batches: [ENTRY], bytes: 7, head: "f0".repeat(32) };
const BODY = Buffer.from("a line\n");

/** The header line of a commit, without its LF. */
function lineOf(commit: Commit): Buffer {
  return encodeCommitHeader(commit, [BODY]).subarray(0, -1);
}

function read(line: Buffer) {
  return new PlainHeaderReader(line).read(0, line.length);
}

test("PlainHeaderReader.read() gives what a plain header says", () => {
  const long = { ...ENTRY, batch_id: "x".repeat(256), source: "s".repeat(128) };
  const commits: Record<string, Commit> = {
    "one batch": COMMIT,
    "several": { ...COMMIT, batches: [ENTRY, long, { ...ENTRY, events: 1 }] },
    "an empty name": { ...COMMIT, batches: [{ ...ENTRY, batch_id: "" }] },
    "the largest counts": { ...COMMIT, bytes: 999_999_999_999_999 },
  };
  for (const [label, commit] of Object.entries(commits)) {
    const line = lineOf(commit);
    const { sha256 } = JSON.parse(line.toString());
    assert.deepEqual(read(line), { commit, sha256 }, label);
  }
});

test("PlainHeaderReader.read() leaves what is spelled otherwise", () => {
  const spelledAs = (text: string, other: string) => {
    const line = lineOf(COMMIT).toString();
    assert.ok(line.includes(text), text);
    return Buffer.from(line.replace(text, other));
  };
  const named = (batch_id: string) => lineOf({ ...COMMIT, batches: [{ ...ENTRY, batch_id }] });
  const lines: Record<string, Buffer> = {
    "nothing": Buffer.alloc(0),
    "no batch": lineOf({ ...COMMIT, batches: [], bytes: 0 }),
    "a name with a quote": named('"'),
    "a name with a backslash": named("\\"),
    "a name with a control character": named("\u001f"),
    "a name that is not ASCII": named("é"),
    "a name with a character above those": named("\u007f"),
    "a count of 16 digits": lineOf({ ...COMMIT, bytes: 1_000_000_000_000_000 }),
    "a count of no digits": spelledAs('"bytes":7', '"bytes":'),
    "a count that begins with 0": spelledAs('"bytes":7', '"bytes":07'),
    "a count of 0": spelledAs('"events":12', '"events":0'),
    "a negative count": spelledAs('"bytes":7', '"bytes":-7'),
    "half a count": spelledAs('"bytes":7', '"bytes":7.5'),
    "a comma and no batch": spelledAs('}],"bytes"', '},],"bytes"'),
    "another version of UUID": spelledAs("-7001-", "-4001-"),
    "another variant of UUID": spelledAs("-8203-", "-c203-"),
    "a space": spelledAs('"bytes":7', '"bytes": 7'),
    "more behind it": Buffer.concat([lineOf(COMMIT), Buffer.from("}")]),
  };
  for (const [label, line] of Object.entries(lines)) assert.equal(read(line), null, label);
});

test("PlainHeaderReader.read() stays within its line", () => {
  const line = lineOf(COMMIT);
  const bytes = Buffer.concat([line, line]);
  const reader = new PlainHeaderReader(bytes);
  const { commit } = reader.read(line.length, bytes.length)!;
  assert.deepEqual(commit, COMMIT);
  for (let end = 0; end < line.length; end++) assert.equal(reader.read(0, end), null, `${end}`);
  for (let end = 0; end < line.length; end++) {
    assert.equal(read(line.subarray(0, end)), null, `nothing behind ${end}`);
  }
});

test("PlainHeaderReader.read() reads no other bytes as anything that they do not say", () => {
  const line = lineOf(COMMIT);
  let plain = 0;
  for (let at = 0; at < line.length; at++) {
    const was = line[at]!;
    for (let byte = 0; byte < 0x100; byte++) {
      line[at] = byte;
      const header = read(line);
      if (header === null) continue;
      plain++;
      assert.equal(canonicalize(header), line.toString("latin1"), `byte ${at} is ${byte}`);
    }
    line[at] = was;
  }
  // 192 digits of hashes and 64 of ids, most of them any of 16, and 14 characters of names.
  assert.ok(plain > 250 * 15, `${plain} lines`);
});
