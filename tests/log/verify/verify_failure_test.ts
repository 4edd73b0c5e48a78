import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { sha256Hex } from "../../../src/event/hash.ts";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import { MANIFEST_FILE, pendingPath, TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import type { SegmentEntry } from "../../../src/log/segment/manifest.ts";
import type { EventFacts } from "../../../src/log/segment/segment_metadata.ts";
import type { FailureCode } from "../../../src/log/storage/errors.ts";
import type { BatchEntry } from "../../../src/log/wal/commit_frame.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { appendBytes, flipBit, truncateAt } from "../../support/corrupt.ts";
import {
  type CommitParts,
  manifestOf,
  pendingPaths,
  readRows,
  withCommits,
  withFile,
  withManifest,
  without,
  withRows,
  withSegment,
} from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { commitOffsets, openTestLog, tailOf, withTail } from "../../support/test_log.ts";
import { fullLog, logOf, logWithTwice, verifyTree } from "../../support/verifying.ts";

const FULL = await fullLog();
const SEALED = await logOf({ segments: true });
const MANIFEST = manifestOf(FULL);
const SEGMENTS = MANIFEST.segments;
const [SEGMENT_1, SEGMENT_2, SEGMENT_3] = SEGMENTS as [SegmentEntry, SegmentEntry, SegmentEntry];
const SEGMENT_BYTES = FULL.get(SEGMENT_2.path)!;
const [PENDING_1, PENDING_2] = pendingPaths(FULL) as [string, string];
const PENDING = FULL.get(PENDING_2)!;
const OFFSET_2 = commitOffsets(PENDING)[1]!;
const TAIL = tailOf(FULL);
const ZEROS = "0".repeat(64);

function withPending(bytes: Uint8Array): Tree {
  return withFile(FULL, PENDING_2, bytes);
}

/** The log with changed lines in a commit. */
function withBadLines(change: (lines: string[]) => string[]): Tree {
  return withCommits(FULL, PENDING_2, ([first]) => {
    first!.lines = change(first!.lines);
  });
}

/** The log with a changed entry for the first batch in the file at `path`. */
function withEntry(path: string, change: (entry: BatchEntry) => BatchEntry): Tree {
  return withCommits(FULL, path, ([first]) => {
    const { commit } = first!;
    const [entry, ...rest] = commit.batches;
    first!.commit = { ...commit, batches: [change(entry!), ...rest] };
  });
}

/** The log with one event changed: in a segment, in a pending file or in the tail. */
async function withLine(change: (line: string) => string): Promise<Tree[]> {
  const inFile = (path: string) =>
    withCommits(FULL, path, ([, second]) => {
      second!.lines[1] = change(second!.lines[1]!);
    });
  const inSegment = await withRows(FULL, 1, ([, second]) => {
    second!.line = change(second!.line);
  });
  return [inSegment, inFile(PENDING_1), inFile(TAIL_FILE)];
}

async function withText(from: string | RegExp, to: string): Promise<Tree[]> {
  return await withLine((line) => {
    assert.notEqual(line.replace(from, to), line);
    return line.replace(from, to);
  });
}

function withPayloadAndHash(line: string): string {
  const { payload, content_hash } = JSON.parse(line);
  return line.replace(canonicalize(payload), "true").replace(content_hash, sha256Hex("true"));
}

function swapLines([first]: CommitParts[]): void {
  const { lines } = first!;
  [lines[0], lines[1]] = [lines[1]!, lines[0]!];
}

/** A pending file that begins with the first sealed events. */
async function overlappingPending(): Promise<Tree> {
  const rows = (await readRows(FULL, SEGMENT_1.path)).slice(0, 3);
  const lines = rows.map(({ line }) => line);
  const last_event_id = rows.at(-1)!.entry.last_event_id;
  const batch = { ...rows[0]!.entry, events: 3, last_event_id };
  const commit = { batches: [batch], bytes: 0, head: ZEROS };
  const before = withCommits(FULL, PENDING_1, (commits) => [{ commit, lines }, ...commits]);
  const name = pendingPath(batch.first_event_id, PENDING_1.slice(-43, -7));
  return withFile(without(FULL, PENDING_1), name, before.get(PENDING_1)!);
}

/** The log with forged metadata in a segment and its manifest entry. */
function withForged(number: number, facts: Partial<EventFacts>, tree = FULL): Promise<Tree> {
  return withRows(tree, number, (rows) => rows, facts);
}

/** The log with a forged head in the first segment, from which the second one continues. */
async function withForgedHead(): Promise<Tree> {
  return await withForged(1, { previous_head: ZEROS }, await withForged(0, { head: ZEROS }));
}

/** Logs with one kind of damage, by its name. */
type Damages = Record<string, Tree[]>;

/** Damages grouped by the failures found with and without the chain. Null means no failure. */
const FINDINGS: [byChain: FailureCode, byDefault: FailureCode | null, damages: Damages][] = [
  ["manifest_invalid", "manifest_invalid", {
    "the manifest is missing from a log with content": [
      SEALED,
      await logOf({ pendingFiles: 1 }),
      await logOf({ tailCommits: 1 }),
    ].map((tree) => without(tree, MANIFEST_FILE)),
    "a manifest in a different format": [
      withFile(FULL, MANIFEST_FILE, Buffer.alloc(0)),
      withFile(FULL, MANIFEST_FILE, truncateAt(FULL.get(MANIFEST_FILE)!, 100)),
      withManifest(FULL, { ...MANIFEST, min_reader: 0 }),
      withManifest(FULL, { ...MANIFEST, min_writer: 0 }),
    ],
    "segments reordered, duplicated or omitted": [
      [SEGMENT_2, SEGMENT_1, SEGMENT_3],
      [SEGMENT_1, ...SEGMENTS],
      [SEGMENT_1, SEGMENT_3],
    ].map((segments) => withManifest(FULL, { ...MANIFEST, segments })),
    "a segment is missing": [without(FULL, SEGMENT_2.path)],
    "an older manifest was restored": [[], manifestOf(SEALED).segments.slice(0, 1)]
      .map((segments) => withManifest(SEALED, { ...manifestOf(SEALED), segments })),
  }],
  ["file_hash_mismatch", "file_hash_mismatch", {
    "a segment has changed bytes": [
      withFile(FULL, SEGMENT_2.path, flipBit(SEGMENT_BYTES, 100)),
    ],
    "a segment has the wrong size": [
      truncateAt(SEGMENT_BYTES, 100),
      appendBytes(SEGMENT_BYTES, "?"),
      Buffer.alloc(0),
    ].map((bytes) => withFile(FULL, SEGMENT_2.path, bytes)),
  }],
  ["segment_invalid", "segment_invalid", {
    "a file that is not a segment": [
      withSegment(FULL, 0, Buffer.from("?")),
      withSegment(FULL, 1, truncateAt(SEGMENT_BYTES, 500)),
    ],
    "a swapped segment": [withSegment(FULL, 0, SEGMENT_BYTES)],
    "a split or truncated batch": [await withForged(0, { batches: 2 })],
  }],
  ["pending_invalid", "pending_invalid", {
    "damage, a torn commit or trailing bytes": [
      flipBit(PENDING, 8 * 500),
      flipBit(PENDING, 8 * (OFFSET_2 + 500)),
      truncateAt(PENDING, PENDING.length - 1),
      appendBytes(PENDING, "?"),
    ].map(withPending),
    "a name with the wrong first or last event": [
      withFile(withPending(FULL.get(PENDING_1)!), PENDING_1, PENDING),
      withPending(Buffer.alloc(0)),
      withCommits(FULL, PENDING_2, ([first]) => [first!]),
    ],
    "an invalid name for a pending file": [
      withFile(without(FULL, PENDING_2), "pending/1.ndjson", PENDING),
    ],
    "a commit with fewer lines than events": [withBadLines((lines) => lines.slice(0, -1))],
    "a commit with more lines than events": [withBadLines((lines) => [...lines, "{}"])],
    "a line that is not an event": [
      withBadLines((lines) => lines.with(1, "{}")),
      withBadLines((lines) => lines.with(1, lines[1]!.replace('"kind"', '"kinds"'))),
    ],
    "a malformed event id": [
      withBadLines((lines) => lines.with(1, lines[1]!.replace("-7", "-x"))),
    ],
    "an event of a different batch": [
      withBadLines((lines) => lines.with(1, lines[1]!.replace("shop", "shed"))),
      withEntry(PENDING_2, (entry) => ({ ...entry, batch_id: "another" })),
    ],
    "a batch entry with the wrong last event": [
      withEntry(PENDING_2, (entry) => ({ ...entry, last_event_id: entry.first_event_id })),
    ],
  }],
  ["tail_invalid", "tail_invalid", {
    "the tail is missing": [
      await logOf({}),
      SEALED,
      await logOf({ tailCommits: 1 }),
      await logOf({ pendingFiles: 1 }),
    ].map((tree) => without(tree, TAIL_FILE)),
    "a batch entry with the wrong first event": [
      withEntry(TAIL_FILE, (entry) => ({ ...entry, first_event_id: entry.last_event_id })),
    ],
  }],
  ["order_invalid", "order_invalid", {
    "events out of order": [
      withCommits(FULL, TAIL_FILE, swapLines),
      withCommits(FULL, PENDING_1, swapLines),
      await withRows(FULL, 0, ([first, second, ...rest]) => [second!, first!, ...rest]),
    ],
    "overlapping files": [
      withTail(FULL, appendBytes(FULL.get(PENDING_1)!, TAIL)),
      withTail(FULL, PENDING),
      await overlappingPending(),
    ],
  }],
  ["idempotency_invalid", "idempotency_invalid", {
    "a duplicate batch": [
      await logWithTwice(0, 1),
      await logWithTwice(0, 2),
      await logWithTwice(1, 2),
    ],
  }],
  ["batch_commitment_mismatch", "batch_commitment_mismatch", {
    "the digest is wrong": [
      withEntry(TAIL_FILE, (entry) => ({ ...entry, batch_digest: ZEROS })),
      await withRows(FULL, 0, (rows) => {
        for (const { entry } of rows) entry.batch_digest = ZEROS;
      }),
    ],
  }],
  ["event_hash_mismatch", "batch_commitment_mismatch", {
    "an event differs from the one submitted": [
      ...await withText(/"stream":"s-\d"/, '"stream":"s-9"'),
      ...await withText(/"kind":"upserted"/, '"kind":"deleted"'),
      ...await withText(/"record_key":"/, '"record_key":"x'),
      ...await withText(/"occurred_at":"2025/, '"occurred_at":"2024'),
    ],
    "a payload and its hash": await withLine(withPayloadAndHash),
  }],
  ["event_hash_mismatch", null, {
    "an event or its hash is wrong": [
      ...await withText(/"observed_at":"2026/, '"observed_at":"2025'),
      ...await withText(/"event_hash":"..../, '"event_hash":"ffff'),
    ],
  }],
  ["content_hash_mismatch", "batch_commitment_mismatch", {
    "a content hash is wrong": await withText(/"content_hash":"..../, '"content_hash":"ffff'),
  }],
  ["content_hash_mismatch", null, { "a payload was changed": await withText("東京", "京東") }],
  ["chain_head_mismatch", null, {
    "the head of a commit is wrong": [
      withCommits(FULL, TAIL_FILE, ([, second]) => void (second!.commit.head = ZEROS)),
    ],
    "the head of a segment is wrong": [await withForgedHead()],
    "events are missing": [await withRows(FULL, 1, (rows) => rows.slice(3))],
  }],
  ["chain_head_mismatch", "pending_invalid", {
    "a pending file does not continue the chain": [
      without(FULL, PENDING_1),
      withCommits(FULL, PENDING_1, ([first]) => void (first!.commit.head = ZEROS)),
    ],
  }],
  ["chain_head_mismatch", "tail_invalid", {
    "the tail does not continue the chain": [
      without(FULL, PENDING_2),
      withCommits(FULL, TAIL_FILE, ([first]) => void (first!.commit.head = ZEROS)),
      withCommits(FULL, TAIL_FILE, ([, ...rest]) => rest),
    ],
    "the chain head of a clean shutdown is wrong": [
      withCommits(FULL, TAIL_FILE, (commits) => void (commits.at(-1)!.commit.head = ZEROS)),
    ],
  }],
];

/** A message names the file in which verification failed, then the event, if there is one. */
const LOCATED = /^(manifest\.json|tail\.ndjson|(segments|pending)\/\S+)(, event \S{36})?: ./;

for (const [byChain, byDefault, damages] of FINDINGS) {
  for (const [what, trees] of Object.entries(damages)) {
    test(`verifyLog() reports ${byChain}: ${what}`, async () => {
      for (const tree of trees) {
        const { failure } = await verifyTree(tree, { chain: true });
        assert.equal(failure?.code, byChain, failure?.message);
        assert.match(failure.message, LOCATED);
        assert.equal((await verifyTree(tree, { chain: false })).report.failure, byDefault);
      }
    });
  }
}

test("verifyLog() reports the byte of an invalid commit before a valid one", async () => {
  for (const offset of commitOffsets(TAIL).slice(0, -2)) {
    for (const byte of [0, 500, 1500]) {
      const damaged = withTail(FULL, flipBit(TAIL, 8 * (offset + byte)));
      for (const chain of [false, true]) {
        const { failure } = await verifyTree(damaged, { chain });
        assert.equal(failure!.code, "tail_invalid");
        assert.match(failure!.message, new RegExp(`^tail\\.ndjson.*: at byte ${offset}: `));
      }
    }
  }
});

test("verifyLog() reports the event of a wrong hash, and the hash that it has", async () => {
  const [, , inTail] = await withText(/"content_hash":"..../, '"content_hash":"ffff');
  const { failure } = await verifyTree(inTail!);
  assert.match(
    failure!.message,
    /^tail\.ndjson, event \S+: payload hash: expected ffff\w{60}, found [0-9a-f]{64}$/,
  );
});

/** The log with a changed payload in the tail's second commit. */
const OTHER_PAYLOAD = withCommits(FULL, TAIL_FILE, ([, second]) => {
  second!.lines[1] = second!.lines[1]!.replace("東京", "京東");
});

/** The code and file of each failure, starting with the first. */
async function damagesOf(tree: Tree, options: { chain: boolean }): Promise<string[]> {
  const { failure, others } = await verifyTree(tree, options);
  return [failure!, ...others].map(({ code, message }) => {
    return `${code} ${message.slice(0, message.search(/[:,]/))}`;
  });
}

test("verifyLog() reports the failure that comes first in the log", async () => {
  const bytes = tailOf(OTHER_PAYLOAD);
  const both = withTail(OTHER_PAYLOAD, flipBit(bytes, 8 * (commitOffsets(bytes)[2]! + 400)));
  assert.deepEqual(await damagesOf(both, { chain: true }), [`content_hash_mismatch ${TAIL_FILE}`]);
  assert.deepEqual(await damagesOf(both, { chain: false }), [`tail_invalid ${TAIL_FILE}`]);
});

test("verifyLog() names every damaged file in addition to the first failure", async () => {
  const damaged = new Map(FULL);
  for (const path of [SEGMENT_2.path, SEGMENT_3.path, PENDING_2, TAIL_FILE]) {
    damaged.set(path, flipBit(FULL.get(path)!, 8 * 300));
  }
  for (const chain of [false, true]) {
    assert.deepEqual(await damagesOf(damaged, { chain }), [
      `file_hash_mismatch ${SEGMENT_2.path}`,
      `file_hash_mismatch ${SEGMENT_3.path}`,
      `pending_invalid ${PENDING_2}`,
      `tail_invalid ${TAIL_FILE}`,
    ]);
    const { report } = await verifyTree(damaged, { chain });
    const { segments_checked, pending_checked, events_checked, remnants } = report;
    assert.deepEqual([segments_checked, pending_checked, events_checked], [2, 0, 3]);
    assert.deepEqual(remnants, []);
  }
  const path = SEGMENT_1.path;
  const inTail = withFile(OTHER_PAYLOAD, path, flipBit(FULL.get(path)!, 100));
  const found = [`file_hash_mismatch ${path}`, `content_hash_mismatch ${TAIL_FILE}`];
  assert.deepEqual(await damagesOf(inTail, { chain: true }), found);
  assert.deepEqual(await damagesOf(inTail, { chain: false }), found.slice(0, 1));
});

test("verifyLog() does not report a file for damage in the preceding file", async () => {
  const head = withCommits(FULL, PENDING_1, ([, last]) => void (last!.commit.head = ZEROS));
  assert.deepEqual(await damagesOf(head, { chain: true }), [`chain_head_mismatch ${PENDING_1}`]);
  for (const path of [SEGMENT_1.path, PENDING_1]) {
    assert.equal((await damagesOf(without(FULL, path), { chain: true })).length, 1, path);
  }
});

test("verifyLog() names an unreadable file in addition to the first failure", async () => {
  const storage = new SimulatedDisk(
    withFile(FULL, SEGMENT_1.path, flipBit(FULL.get(SEGMENT_1.path)!, 100)),
  );
  storage.hook = ({ kind, path }) =>
    kind === "read" && path === TAIL_FILE ? { errno: "EIO" } : null;
  const { report, others } = await verifyLog(storage, { chain: true });
  assert.equal(report.failure, "file_hash_mismatch");
  assert.deepEqual(others.map(({ code }) => code), ["not checked"]);
  assert.match(others[0]!.message, /^tail\.ndjson: .*EIO/);
  assert.equal(storage.openFiles, 0);
});

test("verifyLog() reports the first of many duplicate batches, before other damage", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const names = Array.from({ length: 2000 }, (_, number) => `${number}`);
  await log.append(names.map((name) => preparedBatch(name)));
  await log.append(["other", "new-1234", "new-567", "new-89"].map((name) => preparedBatch(name)));
  await log.append([preparedBatch("last")]);
  await log.close();
  const old = (text: string) => text.replace("new-", "");
  const repeated = withCommits(storage.tree(), TAIL_FILE, ([, second]) => {
    const batches = second!.commit.batches.map((entry) => ({
      ...entry,
      batch_id: old(entry.batch_id),
    }));
    second!.commit = { ...second!.commit, batches };
    second!.lines = second!.lines.map(old);
  });
  const offsets = commitOffsets(tailOf(repeated));
  const damaged = flipBit(tailOf(repeated), 8 * (offsets[2]! + 300));
  for (
    const [tree, codes] of [
      [repeated, []],
      [withTail(repeated, damaged), ["tail_invalid"]],
    ] as const
  ) {
    const { failure, others } = await verifyTree(tree, { chain: false });
    assert.match(failure!.message, /: batch "1234" of source "shop" is committed twice$/);
    assert.deepEqual(others.map(({ code }) => code), codes);
  }
  // Damage takes precedence if it is in the first of the two batches.
  const first = withTail(repeated, flipBit(damaged, 8 * 300));
  assert.equal((await verifyTree(first)).report.failure, "tail_invalid");
});
