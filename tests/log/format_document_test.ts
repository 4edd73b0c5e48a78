/**
 * The code writes and reads exactly the example in docs/format.md, and the example agrees with the
 * text around it.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { type CommittedEvent, verifyEvent } from "../../src/event/verify_event.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { MANIFEST_FILE } from "../../src/log/storage/file_names.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import {
  logTree,
  openTestLog,
  readAll,
  tailOf,
  unsealedBatches,
  withTail,
} from "../support/test_log.ts";

const DOCUMENT = readFileSync(new URL("../../docs/format.md", import.meta.url), "utf8");

/** The code block that follows the marker of an example. */
function exampleBlock(name: string): string {
  const start = DOCUMENT.indexOf(`<!-- example: ${name} -->`);
  assert.ok(start >= 0, `docs/format.md has the example ${name}`);
  const contentStart = DOCUMENT.indexOf("\n", DOCUMENT.indexOf("```", start)) + 1;
  return DOCUMENT.slice(contentStart, DOCUMENT.indexOf("```", contentStart));
}

const TAIL = Buffer.from(exampleBlock("tail.ndjson"));
const LINES: string[] = TAIL.toString().trimEnd().split("\n");
const EVENTS: CommittedEvent[] = LINES.filter((line) => line.startsWith('{"event_id"'))
  .map((line) => JSON.parse(line));
const BATCHES: BatchEntry[] = LINES.filter((line) => line.startsWith('{"commit"'))
  .flatMap((line) => JSON.parse(line).commit.batches);

function sha256Hex(...pieces: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

function eventsOf(batch: BatchEntry): CommittedEvent[] {
  const events = EVENTS.filter(({ source, batch_id }) =>
    source === batch.source && batch_id === batch.batch_id
  );
  assert.equal(events.length, batch.events);
  return events;
}

test("docs/format.md: the code writes exactly the bytes of the example", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  for (const batches of JSON.parse(exampleBlock("batches"))) {
    await log.append(
      batches.map((batch: unknown) => prepareBatch(Buffer.from(JSON.stringify(batch)))),
    );
  }
  await log.close();
  assert.equal(tailOf(storage.tree()).toString(), TAIL.toString());
});

test("docs/format.md: a log whose tail is the example opens without changing it", async () => {
  const tree = withTail(await logTree([]), TAIL);
  const storage = new SimulatedDisk(tree);
  const { log, reports } = await openTestLog(storage);
  assert.deepEqual(await unsealedBatches(log), BATCHES);
  assert.deepEqual(await readAll(log.snapshot), EVENTS);
  assert.deepEqual(reports, []);
  await log.close();
  assert.deepEqual(storage.tree(), new SimulatedDisk(tree).tree());
});

test("docs/format.md: the example manifest equals that of a new log", async () => {
  const manifest = Buffer.from((await logTree([])).get(MANIFEST_FILE)!).toString();
  assert.ok(DOCUMENT.includes("```text\n" + manifest + "```"));
});

test("docs/format.md: the size and hash stated in the text match the example", () => {
  assert.ok(DOCUMENT.includes(`${TAIL.length.toLocaleString("en")} bytes`));
  assert.ok(DOCUMENT.includes(`\`${sha256Hex(TAIL)}\``));
  assert.equal(LINES.length, 7);
});

test("docs/format.md: frame hashes cover the commit, one LF and the lines after the header", () => {
  let offset = 0;
  while (offset < TAIL.length) {
    const headerEnd = TAIL.indexOf("\n", offset);
    const header = TAIL.toString("utf8", offset, headerEnd);
    const { commit, sha256 } = JSON.parse(header);
    const object = canonicalize(commit);
    assert.equal(header, `{"commit":${object},"sha256":"${sha256}"}`);
    const bodyEnd = headerEnd + 1 + commit.bytes;
    assert.equal(sha256Hex(object, "\n", TAIL.subarray(headerEnd + 1, bodyEnd)), sha256);
    offset = bodyEnd;
  }
});

test("docs/format.md: event and batch hashes follow from the stated rules", async () => {
  for (const event of EVENTS) {
    assert.deepEqual(await verifyEvent(event), { contentHash: true, eventHash: true });
  }
  for (const batch of BATCHES) {
    const events = eventsOf(batch).map((event) => ({
      content_hash: event.content_hash,
      kind: event.kind,
      ...(event.occurred_at === undefined ? {} : { occurred_at: event.occurred_at }),
      record_key: event.record_key,
      stream: event.stream,
    }));
    const digest = sha256Hex(canonicalize({ events, source: batch.source, v: 1 }));
    assert.equal(digest, batch.batch_digest);
  }
  assert.equal(sha256Hex('{"id":1,"total":12.5}'), EVENTS[0]!.content_hash);
  assert.equal(sha256Hex(exampleBlock("envelope").trimEnd()), EVENTS[0]!.event_hash);
  assert.equal(sha256Hex(exampleBlock("digest").trimEnd()), BATCHES[0]!.batch_digest);
});

test("docs/format.md: the chain table follows from the event hashes", () => {
  const table = DOCUMENT.slice(DOCUMENT.indexOf("<!-- example: chain -->"));
  const rows = table.slice(0, table.indexOf("\n## ")).split("\n")
    .filter((line) => /^\| \d/.test(line))
    .map((line) => line.split("|").slice(2, 4).map((cell) => cell.replaceAll(/[ `]/g, "")));
  let head = sha256Hex("service/genesis/v1");
  const expected = [["", head]];
  for (const { event_hash } of EVENTS) {
    head = sha256Hex(Buffer.from(head, "hex"), Buffer.from(event_hash, "hex"));
    expected.push([event_hash, head]);
  }
  assert.deepEqual(rows, expected);
  const heads = LINES.filter((line) => line.startsWith('{"commit"'))
    .map((line) => JSON.parse(line).commit.head);
  assert.deepEqual(heads, [expected[2]![1], expected[4]![1], expected[4]![1]]);
});
