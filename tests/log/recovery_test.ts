/** `openLog()` discards the last commit if a crash tore or otherwise damaged it. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { EventScan } from "../../src/log/read/event_scan.ts";
import { CorruptLogError } from "../../src/log/storage/errors.ts";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { treeHash } from "../faults/support/crash_points.ts";
import { appendBytes, flipBit, repairFraming, truncateAt } from "../support/corrupt.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import { verifyTree } from "../support/verifying.ts";
import { preparedBatch } from "../support/prepared.ts";
import {
  assertRefused,
  commitOffsets,
  joinPieces,
  logTree,
  openTestLog,
  readAll,
  tailOf,
  unsealedBatches,
  WHOLE,
  withTail,
} from "../support/test_log.ts";

/** Commits as lists of batch ids. An empty list stands for a clean shutdown. */
const HISTORIES: Record<string, string[][]> = {
  "a first commit": [["a"]],
  "a later commit": [["a"], ["b"]],
  "a commit of several batches": [["a"], ["b", "c", "d"]],
  "a clean shutdown": [["a"], ["b"], []],
  "a commit after a clean shutdown": [["a"], [], ["b"]],
};

/** The batches that a second open reads, by a hash of the recovered files. */
const readAgain = new Map<string, BatchEntry[]>();

/** Opens a log, and checks that a second open changes nothing and reads the same events. */
async function recoverTwice(tree: Tree) {
  const first = new SimulatedDisk(tree);
  const opened = await openTestLog(first);
  const batches = await unsealedBatches(opened.log);
  const afterFirst = first.tree();
  const hash = treeHash(afterFirst);
  if (!readAgain.has(hash)) {
    const second = new SimulatedDisk(afterFirst);
    const again = await openTestLog(second);
    assert.deepEqual(second.tree(), afterFirst);
    assert.deepEqual(again.reports, []);
    readAgain.set(hash, await unsealedBatches(again.log));
  }
  assert.deepEqual(readAgain.get(hash), batches);
  return { ...opened, batches, tree: afterFirst };
}

/** What a log with a valid tail contains. */
interface Contents {
  tail: Buffer;
  batches: BatchEntry[];
  frontier: string | null;
}

/** Opens a log with only the first `sizeBytes` of its tail, the end of a commit. */
async function contentsUpTo(tree: Tree, sizeBytes: number): Promise<Contents> {
  const tail = tailOf(tree).subarray(0, sizeBytes);
  const { log } = await openTestLog(new SimulatedDisk(withTail(tree, tail)));
  return { tail, batches: await unsealedBatches(log), frontier: log.snapshot.frontier };
}

/** Checks that `tree` opens with only the expected commits. */
async function assertRecovers(tree: Tree, expected: Contents, label: string): Promise<void> {
  const { log, reports, batches, tree: recovered } = await recoverTwice(tree);
  assert.ok(
    tailOf(recovered).equals(expected.tail),
    `${label}: the tail ends after the last commit`,
  );
  assert.deepEqual(batches, expected.batches, label);
  assert.equal(log.snapshot.frontier, expected.frontier, label);
  const removedBytes = tailOf(tree).length - expected.tail.length;
  const reported = removedBytes === 0 ? [] : [
    `${TAIL_FILE}: removed ${removedBytes} bytes of an unfinished commit after ` +
    (log.snapshot.frontier === null ? "the start of the file" : `event ${log.snapshot.frontier}`),
  ];
  assert.deepEqual(reports, reported, label);
}

for (const [name, history] of Object.entries(HISTORIES)) {
  test(`openLog() discards ${name}, torn at any byte`, async () => {
    const tree = await logTree(history);
    const tail = tailOf(tree);
    const lastOffset = commitOffsets(tail).at(-2)!;
    const expected = await contentsUpTo(tree, lastOffset);
    for (let size = lastOffset; size < tail.length; size++) {
      const cut = withTail(tree, truncateAt(tail, size));
      await assertRecovers(cut, expected, `truncated at ${size}`);
    }
    await assertRecovers(tree, await contentsUpTo(tree, tail.length), "whole");
  });
}

test("openLog() discards the last commit if one of its bits is flipped, and refuses an earlier flip", async () => {
  for (const history of [[["a"], ["b", "c"], ["d"]], [["a"], []]]) {
    const tree = await logTree(history);
    const tail = tailOf(tree);
    const lastOffset = commitOffsets(tail).at(-2)!;
    const expected = await contentsUpTo(tree, lastOffset);
    for (let bit = 0; bit < tail.length * 8; bit++) {
      // Flips one bit per byte: bit 0 of the first, bit 1 of the second, and so on.
      if (bit % 8 !== (bit >> 3) % 8) continue;
      const damaged = withTail(tree, flipBit(tail, bit));
      if (bit >> 3 < lastOffset) await assertRefused(damaged, `bit ${bit}`);
      else await assertRecovers(damaged, expected, `bit ${bit}`);
    }
  }
});

test("openLog() removes bytes after the last commit that are not a commit", async () => {
  const tree = await logTree([["a"], ["b"]]);
  const tail = tailOf(tree);
  const garbage: Record<string, string | Uint8Array> = {
    "one byte": "x",
    "a line feed": "\n",
    "zeros": Buffer.alloc(8192),
    "zeros longer than the largest header": Buffer.alloc(5 * 1024 * 1024),
    "noise": Buffer.alloc(5000, "n\noise}"),
    "an event": tail.subarray(tail.lastIndexOf("\n", -2) + 1),
    "a header alone": tail.subarray(0, tail.indexOf("\n") + 1),
    "a header that declares too many bytes": Buffer.from(
      tail.toString().replace(/"bytes":\d+/, '"bytes":9007199254740991').split("\n", 1)[0] + "\n",
    ),
  };
  const expected = await contentsUpTo(tree, tail.length);
  for (const [name, bytes] of Object.entries(garbage)) {
    await assertRecovers(withTail(tree, appendBytes(tail, bytes)), expected, name);
  }
});

test("openLog() discards the last commit if only some of its blocks reached the disk", async () => {
  const tree = await logTree([["a"], ["b", "c", "d", "e", "f", "g", "h"]]);
  const tail = tailOf(tree);
  const lastOffset = commitOffsets(tail).at(-2)!;
  const expected = await contentsUpTo(tree, lastOffset);
  const blockBytes = 512;
  for (let start = lastOffset; start < tail.length; start += blockBytes) {
    const torn = Buffer.from(tail);
    torn.fill(0, start, Math.min(torn.length, start + blockBytes));
    await assertRecovers(withTail(tree, torn), expected, `zeros at ${start}`);
  }
});

test("openLog() refuses a commit with missing bytes when another follows", async () => {
  const tree = await logTree([["a"], ["b"], ["c"]]);
  const tail = tailOf(tree);
  const [, start = 0, end = 0] = commitOffsets(tail);
  for (const removedBytes of [1, 2, 100, end - start - 1]) {
    const shorter = Buffer.concat([tail.subarray(0, end - removedBytes), tail.subarray(end)]);
    await assertRefused(withTail(tree, shorter), `without ${removedBytes} bytes`);
    const other = Buffer.concat([tail.subarray(0, start), tail.subarray(start + removedBytes)]);
    await assertRefused(withTail(tree, other), `without the first ${removedBytes} bytes`);
  }
});

test("openLog() refuses valid commits that are out of order", async () => {
  const tree = await logTree([["a"], ["b"], ["c"]]);
  const tail = tailOf(tree);
  const [, second = 0, third = 0] = commitOffsets(tail);
  const commits = [tail.subarray(0, second), tail.subarray(second, third), tail.subarray(third)];
  for (const order of [[1, 0], [0, 2, 1], [0, 0], [0, 1, 1, 2]]) {
    const shuffled = Buffer.concat(order.map((number) => commits[number]!));
    await assertRefused(withTail(tree, shuffled), `commits ${order}`);
  }
});

test("openLog() refuses a batch whose ids contradict its event count", async () => {
  const tree = await logTree([["a"]]);
  const tail = tailOf(tree).toString();
  const edits = [
    tail.replace('"events":1', '"events":2'),
    tail.replace(/"first_event_id":"(\w{7})\w/, '"first_event_id":"$1f'),
    tail.replace(/"last_event_id":"(\w{7})\w/, '"last_event_id":"$1f'),
  ];
  for (const edit of edits) {
    assert.notEqual(edit, tail);
    await assertRefused(withTail(tree, repairFraming(Buffer.from(edit))), edit);
  }
});

test("openLog() continues the ids and the chain from the end of the recovered log", async () => {
  const tree = await logTree([["a"], ["b"], ["c"]]);
  const tail = tailOf(tree);
  const cut = new SimulatedDisk(withTail(tree, truncateAt(tail, tail.length - 1)));
  const { log } = await openTestLog(cut);
  await log.append([preparedBatch("c")]);
  assert.ok(tailOf(cut.tree()).equals(tail), "the same commit again, byte for byte");
  assert.deepEqual((await readAll(log.snapshot)).map((event) => event.batch_id), ["a", "b", "c"]);
});

test("openLog() recovers and reads commits larger than its read buffer", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const sizes = [3_000_000, 10, 1_048_576, 1_100_000];
  for (const [number, size] of sizes.entries()) {
    const events = [{ payload: "x".repeat(size) }, { payload: number }];
    await log.append([preparedBatch(`b${number}`, { events })]);
  }
  const tree = storage.tree();
  const { log: reopened } = await openTestLog(new SimulatedDisk(tree));
  const events = await readAll(reopened.snapshot);
  assert.deepEqual(
    events.map(({ payload }) => typeof payload === "string" ? payload.length : payload),
    sizes.flatMap((size, number) => [size, number]),
  );
  const tail = tailOf(tree);
  const offsets = commitOffsets(tail);
  const cut = withTail(tree, truncateAt(tail, tail.length - 1));
  const expected = await contentsUpTo(tree, offsets.at(-2)!);
  await assertRecovers(cut, expected, "the last commit truncated");
  await assertRefused(withTail(tree, flipBit(tail, 8 * 5000)), "the first commit damaged");
});

test("openLog() does not index discarded lines", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("a")]);
  const large = (size: number) =>
    Array.from({ length: 500 }, () => ({ payload: "x".repeat(size) }));
  await log.append([preparedBatch("removed", { events: large(1000) })]);
  const tail = tailOf(storage.tree());
  const cut = new SimulatedDisk(withTail(storage.tree(), flipBit(tail, 8 * tail.length - 1)));
  const { log: recovered } = await openTestLog(cut);
  await recovered.append([preparedBatch("b", { events: large(700) })]);
  const events = await readAll(recovered.snapshot);
  assert.equal(events.length, 501);
  for (let place = 0; place + 1 < events.length; place += 50) {
    const after = events[place]!.event_id;
    const scan = new EventScan(recovered.snapshot, { ...WHOLE, after, limitEvents: 1 });
    assert.equal(JSON.parse(await joinPieces(scan)).event_id, events[place + 1]!.event_id);
  }
});

/*
 * Regression: any damage at the end of a tail was treated as a torn commit and removed. When an
 * editor had converted the line endings, the whole tail was lost. A crash tears only one commit, so
 * the service refuses a tail with more damage and leaves the repair to the operator.
 */

/** Damages a byte of the commits at these indices. */
function withDamagedCommits(tail: Buffer, places: number[]): Buffer {
  const damaged = Buffer.from(tail);
  const offsets = commitOffsets(tail);
  for (const place of places) damaged[offsets[place]! + 100]! ^= 1;
  return damaged;
}

const DAMAGES: [name: string, damage: (tail: Buffer) => Buffer][] = [
  ["converted line endings", (tail) => Buffer.from(`${tail}`.replaceAll("\n", "\r\n"))],
  [
    "converted line endings, with the last one missing",
    (tail) => Buffer.from(`${tail}`.trimEnd().replaceAll("\n", "\r\n")),
  ],
  ["the first two commits", (tail) => withDamagedCommits(tail, [0, 1])],
  ["the last two commits", (tail) => withDamagedCommits(tail, [2, 3])],
  ["every commit", (tail) => withDamagedCommits(tail, [0, 1, 2, 3])],
  [
    "a damaged commit and a truncated one",
    (tail) => withDamagedCommits(tail, [1]).subarray(0, commitOffsets(tail)[2]! + 40),
  ],
];

for (const [name, damage] of DAMAGES) {
  for (const end of ["killed", "shut down"]) {
    test(`openLog() refuses damage: ${name}, in a log that was ${end}`, async () => {
      const last = end === "killed" ? ["d", "e"] : [];
      const tree = await logTree([["a"], ["b"], ["c"], last]);
      const damaged = withTail(tree, damage(tailOf(tree)));
      const storage = new SimulatedDisk(damaged);
      await assert.rejects(openTestLog(storage), (error) => {
        assert.ok(error instanceof CorruptLogError);
        assert.match(error.message, /another commit begins at byte \d+/);
        return true;
      });
      assert.deepEqual(storage.tree(), damaged, "nothing was changed");
      assert.equal((await verifyTree(damaged, { chain: false })).report.failure, "tail_invalid");
    });
  }
}
