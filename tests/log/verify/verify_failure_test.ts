import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { MANIFEST_FILE, pendingPath, TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import type { FailureCode } from "../../../src/log/verify/failure.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { appendBytes, flipBit, truncateAt } from "../../support/corrupt.ts";
import {
  forgeSegment,
  manifestOf,
  pendingPaths,
  readRows,
  splitCommits,
  withCommits,
  withManifest,
  withRows,
  withSegment,
} from "../../support/forged_log.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { commitOffsets, tailOf, withTail } from "../../support/test_log.ts";
import { fullLog, logOf, logWithTwice, verifyTree } from "../../support/verifying.ts";

interface Finding {
  code: FailureCode;
  /** What the message must tell. */
  message: RegExp;
  /** In the default pass: the same if absent, null when only `chain` finds it. */
  byDefault?: FailureCode | null;
}

async function assertFound(tree: Tree, { code, message, byDefault = code }: Finding) {
  const { report, failure } = await verifyTree(tree, { chain: true });
  assert.equal(report.failure, code, failure?.message);
  assert.match(failure!.message, message);
  assert.equal((await verifyTree(tree, { chain: false })).report.failure, byDefault);
}

const HEX_64 = "[0-9a-f]{64}";
const FULL = await fullLog();
const [PENDING_1, PENDING_2] = pendingPaths(FULL) as [string, string];
const MANIFEST = manifestOf(FULL);
const SEGMENT_1 = MANIFEST.segments[0]!;
const SEGMENT_2 = MANIFEST.segments[1]!;

function without(path: string, tree: Tree = FULL): Tree {
  const changed = new Map(tree);
  changed.delete(path);
  return changed;
}

function withFile(path: string, bytes: Uint8Array, tree: Tree = FULL): Tree {
  return new Map(tree).set(path, bytes);
}

test("verifyLog() finds manifest_invalid: the manifest is missing from a log with content", async () => {
  const message = /^manifest\.json: is missing from a log that holds events$/;
  for (const shape of [{ segments: true }, { pendingFiles: 1 }, { tailCommits: 1 }]) {
    const tree = without(MANIFEST_FILE, await logOf(shape));
    await assertFound(tree, { code: "manifest_invalid", message });
  }
});

test("verifyLog() finds manifest_invalid: no manifest of this format", async () => {
  const bytes = FULL.get(MANIFEST_FILE)!;
  for (const changed of [Buffer.alloc(0), truncateAt(bytes, 100), appendBytes(bytes, " ")]) {
    const tree = withFile(MANIFEST_FILE, changed);
    await assertFound(tree, { code: "manifest_invalid", message: /^manifest\.json: / });
  }
  for (const bound of ["min_reader", "min_writer"]) {
    const tree = withManifest(FULL, { ...MANIFEST, [bound]: 0 });
    await assertFound(tree, { code: "manifest_invalid", message: /not a manifest of/ });
  }
});

test("verifyLog() finds manifest_invalid: segments in another order, doubled or left out", async () => {
  const [first, second, third] = MANIFEST.segments;
  for (const segments of [[second, first, third], [first, first, second, third], [first, third]]) {
    const tree = withManifest(FULL, { ...MANIFEST, segments });
    await assertFound(tree, { code: "manifest_invalid", message: /not a manifest of/ });
  }
});

test("verifyLog() finds manifest_invalid: a segment is missing", async () => {
  await assertFound(without(SEGMENT_2.path), {
    code: "manifest_invalid",
    message: /^segments\/.*: it names a missing file$/,
  });
});

test("verifyLog() finds manifest_invalid: an older manifest was put back", async () => {
  const tree = await logOf({ segments: true });
  const manifest = manifestOf(tree);
  for (const count of [0, 1]) {
    const segments = manifest.segments.slice(0, count);
    await assertFound(withManifest(tree, { ...manifest, segments }), {
      code: "manifest_invalid",
      message: /^manifest\.json: does not list the segment that follows, segments\//,
    });
  }
});

test("verifyLog() finds file_hash_mismatch: a segment has other bytes", async () => {
  const bytes = FULL.get(SEGMENT_2.path)!;
  await assertFound(withFile(SEGMENT_2.path, flipBit(bytes, 100)), {
    code: "file_hash_mismatch",
    message: new RegExp(`^segments/.*: the SHA-256 of the file: expected ${HEX_64}, found`),
  });
  for (const changed of [truncateAt(bytes, 100), appendBytes(bytes, "?"), Buffer.alloc(0)]) {
    await assertFound(withFile(SEGMENT_2.path, changed), {
      code: "file_hash_mismatch",
      message: /^segments\/.*: the size of the file in bytes: expected \d+, found \d+$/,
    });
  }
});

test("verifyLog() finds segment_invalid: a file that is no segment, or another one", async () => {
  for (const bytes of [Buffer.from("?"), truncateAt(FULL.get(SEGMENT_1.path)!, 500)]) {
    const tree = withSegment(FULL, 0, bytes);
    await assertFound(tree, { code: "segment_invalid", message: /^segments\// });
  }
  const tree = withSegment(FULL, 0, FULL.get(SEGMENT_2.path)!);
  await assertFound(tree, {
    code: "segment_invalid",
    message: /its footer says events 5, the manifest 3/,
  });
});

test("verifyLog() finds segment_invalid: a batch that is split or cut", async () => {
  const entry = MANIFEST.segments[0]!;
  const rows = await readRows(FULL, entry.path);
  const facts = { ...entry, batches: 2 };
  const split = withSegment(FULL, 0, await forgeSegment(rows, facts), facts);
  await assertFound(split, { code: "segment_invalid", message: /1 batches/ });
});

test("verifyLog() finds pending_invalid: frames that are not right, at the end too", async () => {
  const bytes = FULL.get(PENDING_2)!;
  const [, second] = commitOffsets(bytes);
  const cases: [changed: Buffer, byte: number][] = [
    [flipBit(bytes, 8 * 500), 0],
    [flipBit(bytes, 8 * (second! + 500)), second!],
    [truncateAt(bytes, bytes.length - 1), commitOffsets(bytes).at(-2)!],
    [appendBytes(bytes, "?"), bytes.length],
  ];
  for (const [changed, byte] of cases) {
    const message = new RegExp(`^pending/.*: at byte ${byte}: `);
    await assertFound(withFile(PENDING_2, changed), { code: "pending_invalid", message });
  }
});

test("verifyLog() finds pending_invalid: names that are not of what is in the file", async () => {
  const swapped = withFile(
    PENDING_1,
    FULL.get(PENDING_2)!,
    withFile(PENDING_2, FULL.get(PENDING_1)!),
  );
  const message = /^pending\/.*: the first event that its name tells: expected .*, found /;
  await assertFound(swapped, { code: "pending_invalid", message });
  const last = /^pending\/.*: the last event that its name tells: expected .*, found /;
  const empty = withFile(PENDING_2, Buffer.alloc(0));
  await assertFound(empty, { code: "pending_invalid", message: last });
  const cut = withCommits(FULL, PENDING_2, ([first]) => [first!]);
  await assertFound(cut, { code: "pending_invalid", message: last });
  const misnamed = withFile("pending/1.ndjson", FULL.get(PENDING_2)!, without(PENDING_2));
  await assertFound(misnamed, {
    code: "pending_invalid",
    message: /^pending\/1\.ndjson: not the name of a rotated tail$/,
  });
});

test("verifyLog() finds pending_invalid: lines that are not those of their batches", async () => {
  const cases: [change: (lines: string[]) => void, message: RegExp][] = [
    [(lines) => void lines.pop(), /event .*: a commit with fewer lines than events$/],
    [(lines) => void lines.push("{}"), /event .*: a commit with more lines than events$/],
    [(lines) => void (lines[1] = "{}"), /event .*: a line is no event/],
    [(lines) => void (lines[1] = lines[1]!.replace("shop", "shed")), /of another batch than it/],
  ];
  for (const [change, message] of cases) {
    const tree = withCommits(FULL, PENDING_2, ([first]) => change(first!.lines));
    await assertFound(tree, { code: "pending_invalid", message });
  }
});

test("verifyLog() finds pending_invalid: entries that are not those of their batches", async () => {
  const tree = withCommits(FULL, PENDING_2, ([first]) => {
    const entry = first!.commit.batches[0]!;
    entry.last_event_id = entry.first_event_id;
  });
  const message = /the last_event_id of batch p1-1\/1: expected .*, found /;
  await assertFound(tree, { code: "pending_invalid", message });
});

test("verifyLog() finds tail_invalid: the tail is missing", async () => {
  for (const shape of [{}, { segments: true }, { tailCommits: 1 }]) {
    const tree = without(TAIL_FILE, await logOf(shape));
    await assertFound(tree, { code: "tail_invalid", message: /^tail\.ndjson: is missing$/ });
  }
});

test("verifyLog() finds tail_invalid: a commit that is not right before one that is", async () => {
  const tail = tailOf(FULL);
  const offsets = commitOffsets(tail);
  for (const offset of offsets.slice(0, -2)) {
    for (const bytes of [0, 500, 1500]) {
      const changed = flipBit(tail, 8 * (offset + bytes));
      const message = new RegExp(`^tail\\.ndjson.*: at byte ${offset}: `);
      await assertFound(withTail(FULL, changed), { code: "tail_invalid", message });
    }
  }
});

test("verifyLog() finds tail_invalid: the chain head of a clean end is another one", async () => {
  const tree = withCommits(FULL, TAIL_FILE, (commits) => {
    commits.at(-1)!.commit.head = "0".repeat(64);
  });
  await assertFound(tree, {
    code: "chain_head_mismatch",
    byDefault: "tail_invalid",
    message: new RegExp(
      `the chain head of a commit without events: expected ${HEX_64}, found 0{64}$`,
    ),
  });
});

test("verifyLog() finds order_invalid: events in another order", async () => {
  const swap = ([first]: { lines: string[] }[]) => {
    const { lines } = first!;
    [lines[0], lines[1]] = [lines[1]!, lines[0]!];
  };
  const message = /event .*: follows event /;
  await assertFound(withCommits(FULL, TAIL_FILE, swap), { code: "order_invalid", message });
  await assertFound(withCommits(FULL, PENDING_1, swap), { code: "order_invalid", message });
  const rows = await withRows(FULL, 0, ([first, second, ...rest]) => [second!, first!, ...rest]);
  await assertFound(rows, { code: "order_invalid", message });
});

test("verifyLog() finds order_invalid: files that overlap", async () => {
  const tail = withTail(FULL, appendBytes(FULL.get(PENDING_1)!, tailOf(FULL)));
  await assertFound(tail, { code: "order_invalid", message: /^tail\.ndjson, event .*: follows/ });
  const sealedLines = (await readRows(FULL, SEGMENT_1.path)).map(({ line }) => line);
  const { entry } = (await readRows(FULL, SEGMENT_1.path))[0]!;
  const before = withCommits(FULL, PENDING_1, (commits) => {
    const batches = [{ ...entry, events: 3, last_event_id: JSON.parse(sealedLines[2]!).event_id }];
    return [
      { commit: { batches, bytes: 0, head: "0".repeat(64) }, lines: sealedLines },
      ...commits,
    ];
  });
  const name = pendingPath(entry.first_event_id, PENDING_1.slice(-43, -7));
  const overlapping = withFile(name, before.get(PENDING_1)!, without(PENDING_1));
  const follows = /^pending\/.*: follows event/;
  await assertFound(overlapping, { code: "order_invalid", message: follows });
});

test("verifyLog() finds idempotency_invalid: a batch that is there twice", async () => {
  const places = [[0, 1], [0, 2], [1, 2]] as const;
  for (const [first, second] of places) {
    await assertFound(await logWithTwice(first, second), {
      code: "idempotency_invalid",
      message: /^(pending|tail).*: batch "twice" of source "shop" is there once more$/,
    });
  }
  assert.ok((await verifyTree(await logWithTwice(3, 3))).report.ok);
});

/** A change of one event, in every form that it can be stored in. */
async function treesWithLine(change: (line: string) => string): Promise<Tree[]> {
  const inFile = (path: string) =>
    withCommits(FULL, path, (commits) => {
      const { lines } = commits[1]!;
      lines[1] = change(lines[1]!);
      assert.notEqual(lines[1], splitCommits(FULL.get(path)!)[1]!.lines[1]);
    });
  const inSegment = await withRows(FULL, 1, (rows) => {
    const { line } = rows[1]!;
    rows[1]!.line = change(line);
    assert.notEqual(rows[1]!.line, line);
  });
  return [inSegment, inFile(PENDING_1), inFile(TAIL_FILE)];
}

test("verifyLog() finds batch_commitment_mismatch: an event is not the one submitted", async () => {
  const changes: [from: RegExp, to: string][] = [
    [/"stream":"s-\d"/, '"stream":"s-9"'],
    [/"kind":"upserted"/, '"kind":"deleted"'],
    [/"record_key":"/, '"record_key":"x'],
    [/"content_hash":"..../, '"content_hash":"ffff'],
    [/"occurred_at":"2025/, '"occurred_at":"2024'],
  ];
  for (const [from, to] of changes) {
    for (const tree of await treesWithLine((line) => line.replace(from, to))) {
      const { failure } = await verifyTree(tree, { chain: false });
      assert.equal(failure?.code, "batch_commitment_mismatch");
      const message =
        /, event .*: the digest of batch .*: expected [0-9a-f]{64}, found [0-9a-f]{64}$/;
      assert.match(failure.message, message);
      const code = from.source.includes("hash") ? "content_hash_mismatch" : "event_hash_mismatch";
      assert.equal((await verifyTree(tree, { chain: true })).report.failure, code);
    }
  }
});

test("verifyLog() finds batch_commitment_mismatch: the digest is another one", async () => {
  const inTail = withCommits(FULL, TAIL_FILE, ([first]) => {
    first!.commit.batches[0]!.batch_digest = "0".repeat(64);
  });
  const inSegment = await withRows(FULL, 0, (rows) => {
    for (const { entry } of rows) entry.batch_digest = "0".repeat(64);
  });
  const message = /, event .*: the digest of batch .*: expected 0{64}, found [0-9a-f]{64}$/;
  for (const tree of [inTail, inSegment]) {
    await assertFound(tree, { code: "batch_commitment_mismatch", message });
  }
});

test("verifyLog() finds content_hash_mismatch: a payload is another one", async () => {
  const message = /, event .*: the hash of its payload: expected [0-9a-f]{64}, found [0-9a-f]{64}$/;
  for (const tree of await treesWithLine((line) => line.replace("東京", "京東"))) {
    await assertFound(tree, { code: "content_hash_mismatch", byDefault: null, message });
  }
});

test("verifyLog() finds event_hash_mismatch: an event or its hash is another one", async () => {
  const message =
    /, event .*: the hash of its envelope: expected [0-9a-f]{64}, found [0-9a-f]{64}$/;
  const changes: [from: RegExp, to: string][] = [
    [/"observed_at":"2026/, '"observed_at":"2025'],
    [/"event_hash":"..../, '"event_hash":"ffff'],
  ];
  for (const [from, to] of changes) {
    for (const tree of await treesWithLine((line) => line.replace(from, to))) {
      await assertFound(tree, { code: "event_hash_mismatch", byDefault: null, message });
    }
  }
});

const CHAIN_MESSAGE =
  /, event .*: the chain head after it: expected [0-9a-f]{64}, found [0-9a-f]{64}$/;

test("verifyLog() finds chain_head_mismatch: the head of a commit is another one", async () => {
  for (const path of [PENDING_1, TAIL_FILE]) {
    const tree = withCommits(FULL, path, ([first]) => {
      first!.commit.head = "0".repeat(64);
    });
    const finding = { byDefault: null, message: CHAIN_MESSAGE };
    await assertFound(tree, { code: "chain_head_mismatch", ...finding });
  }
});

test("verifyLog() finds chain_head_mismatch: the head of a segment is another one", async () => {
  const forged = { ...SEGMENT_1, head: "0".repeat(64) };
  const first = await forgeSegment(await readRows(FULL, SEGMENT_1.path), forged);
  const next = { ...SEGMENT_2, previous_head: forged.head };
  const second = await forgeSegment(await readRows(FULL, SEGMENT_2.path), next);
  const tree = withSegment(withSegment(FULL, 0, first, forged), 1, second, next);
  const finding = { byDefault: null, message: CHAIN_MESSAGE };
  await assertFound(tree, { code: "chain_head_mismatch", ...finding });
});

test("verifyLog() finds chain_head_mismatch: events are missing", async () => {
  const finding = { code: "chain_head_mismatch", byDefault: null, message: CHAIN_MESSAGE } as const;
  await assertFound(without(PENDING_1), finding);
  await assertFound(withCommits(FULL, TAIL_FILE, ([, ...rest]) => rest), finding);
  const tree = await withRows(FULL, 1, (rows) => rows.slice(3));
  await assertFound(tree, { ...finding, message: /the chain head/ });
});

test("verifyLog() reports the failure that comes first in the log", async () => {
  const tail = withCommits(FULL, TAIL_FILE, ([, second]) => {
    second!.lines[1] = second!.lines[1]!.replace("東京", "京東");
  });
  const both = withTail(tail, flipBit(tailOf(tail), 8 * (commitOffsets(tailOf(tail))[2]! + 400)));
  await assertFound(both, {
    code: "content_hash_mismatch",
    byDefault: "tail_invalid",
    message: /^tail\.ndjson, event .*: the hash of its payload/,
  });
});

/** The codes and files of all that is damaged, the first failure in front. */
async function damagesOf(tree: Tree, options: { chain: boolean }): Promise<string[]> {
  const { failure, others } = await verifyTree(tree, options);
  return [failure!, ...others].map(({ code, message }) => {
    return `${code} ${message.slice(0, message.search(/[:,]/))}`;
  });
}

test("verifyLog() names every damaged file behind the first failure", async () => {
  const third = MANIFEST.segments[2]!;
  const damaged = new Map(FULL);
  for (const path of [SEGMENT_2.path, third.path, PENDING_2]) {
    damaged.set(path, flipBit(FULL.get(path)!, 8 * 300));
  }
  damaged.set(TAIL_FILE, flipBit(tailOf(FULL), 8 * 300));
  for (const chain of [false, true]) {
    assert.deepEqual(await damagesOf(damaged, { chain }), [
      `file_hash_mismatch ${SEGMENT_2.path}`,
      `file_hash_mismatch ${third.path}`,
      `pending_invalid ${PENDING_2}`,
      `tail_invalid ${TAIL_FILE}`,
    ]);
    const { report } = await verifyTree(damaged, { chain });
    const { segments_checked, pending_checked, events_checked, remnants } = report;
    assert.deepEqual([segments_checked, pending_checked, events_checked], [2, 0, 3]);
    assert.deepEqual(remnants, []);
  }
});

test("verifyLog() names no file for what is wrong with the one before", async () => {
  const head = withCommits(FULL, PENDING_1, ([, last]) => {
    last!.commit.head = "0".repeat(64);
  });
  assert.deepEqual(await damagesOf(head, { chain: true }), [`chain_head_mismatch ${PENDING_1}`]);
  for (const path of [SEGMENT_1.path, PENDING_1]) {
    assert.equal((await damagesOf(without(path), { chain: true })).length, 1, path);
  }
});

test("verifyLog() finds events that are wrong in files behind the first failure", async () => {
  const tail = withCommits(FULL, TAIL_FILE, ([, second]) => {
    second!.lines[1] = second!.lines[1]!.replace("東京", "京東");
  });
  const damaged = withFile(SEGMENT_1.path, flipBit(FULL.get(SEGMENT_1.path)!, 100), tail);
  assert.deepEqual(await damagesOf(damaged, { chain: true }), [
    `file_hash_mismatch ${SEGMENT_1.path}`,
    `content_hash_mismatch ${TAIL_FILE}`,
  ]);
  assert.deepEqual(await damagesOf(damaged, { chain: false }), [
    `file_hash_mismatch ${SEGMENT_1.path}`,
  ]);
});

test("verifyLog() names a file that it cannot read behind the first failure", async () => {
  const storage = new SimulatedDisk(
    withFile(SEGMENT_1.path, flipBit(FULL.get(SEGMENT_1.path)!, 100)),
  );
  storage.hook = ({ kind, path }) =>
    kind === "read" && path === TAIL_FILE ? { errno: "EIO" } : null;
  const { report, others } = await verifyLog(storage, { chain: true });
  assert.equal(report.failure, "file_hash_mismatch");
  assert.deepEqual(others.map(({ code }) => code), ["not checked"]);
  assert.match(others[0]!.message, /^tail\.ndjson: .*EIO/);
  assert.equal(storage.openFiles, 0);
});
