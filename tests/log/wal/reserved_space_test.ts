/** Space reserved after the last commit: when it is written, ignored and removed. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { RESERVED_BYTES, RESERVING_TAIL_BYTES_MIN } from "../../../src/limits.ts";
import { StorageFullError, WriterPoisonedError } from "../../../src/log/storage/errors.ts";
import { TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import { reservedKey, reservedSpace } from "../../../src/log/wal/reserved_space.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { stopping } from "../../support/sealing.ts";
import { ALL_DONE } from "../../support/simulated_crash.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { failNth, noRoomAfter } from "../../support/storage_faults.ts";
import { SECTOR_BYTES } from "../../support/simulated_file.ts";
import {
  batchIdsOf,
  commitOffsets,
  largeTailTree,
  openTestLog,
  readBack,
  tailOf,
  withTail,
} from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

/** Reserved space is the only part of a tail without an LF at its end. */
const RESERVED = /\n[\x80-\xff]+$/;
const textOf = (storage: SimulatedDisk) => tailOf(storage.tree()).toString("latin1");
const LARGE_TAIL = await largeTailTree();

async function openLarge() {
  const storage = new SimulatedDisk(LARGE_TAIL);
  return { storage, log: (await openTestLog(storage)).log };
}

test("append() overwrites reserved space, which readers and the next writer ignore", async () => {
  const { storage, log } = await openLarge();
  assert.doesNotMatch(textOf(storage), RESERVED, "a small tail has none");
  await log.append([preparedBatch("a")]);
  const sizeBytes = tailOf(storage.tree()).length;
  assert.match(textOf(storage), RESERVED);
  for (const batchId of ["b", "c", "d"]) await log.append([preparedBatch(batchId)]);
  assert.equal(tailOf(storage.tree()).length, sizeBytes);
  const { report } = await verifyStorage(storage);
  assert.deepEqual([report.ok, report.events_checked, report.remnants], [true, 5, []]);
  const killed = new SimulatedDisk(storage.tree());
  assert.deepEqual(await batchIdsOf(killed), ["large", "a", "b", "c", "d"]);
  assert.match(textOf(killed), /\n$/);
});

test("close() and rotation end the file with its last commit", async () => {
  for (const end of ["close", "seal"] as const) {
    const { storage, log } = await openLarge();
    await log.append([preparedBatch("a")]);
    assert.match(textOf(storage), RESERVED);
    if (end === "close") await log.close();
    else await assert.rejects(log.seal(() => {}, stopping(() => true)), /stopped/);
    for (const [path, bytes] of storage.tree()) assert.ok((bytes?.at(-1) ?? 0) < 0x80, path);
  }
});

test("append() uses up a disk without room for reserved space", async () => {
  const { storage, log } = await openLarge();
  storage.hook = noRoomAfter(tailOf(storage.tree()).length + 10_000);
  let commits = 0;
  await assert.rejects(async () => {
    for (;; commits++) await log.append([preparedBatch(`${commits}`)]);
  }, StorageFullError);
  assert.ok(commits > 5, `${commits} commits fit`);
  assert.equal((await batchIdsOf(storage)).length, commits + 1);
});

test("verifyLog() sees whole commits while a writer uses up the reserved space", async () => {
  const { storage, log } = await openLarge();
  await log.append([preparedBatch("a")]);
  let reads = 0;
  storage.hook = async ({ kind, path }) => {
    if (kind !== "read" || path !== TAIL_FILE || ++reads !== 2) return null;
    const events = [{ payload: "x".repeat(50_000) }];
    for (let n = 0; n < 30; n++) await log.append([preparedBatch(`${n}`, { events })]);
    return null;
  };
  const { report } = await verifyLog(storage, { chain: true });
  assert.deepEqual([report.ok, report.events_checked, report.remnants], [true, 2, []]);
  assert.match(textOf(storage), RESERVED, "more space was reserved");
});

test("close() and rotation stop the writer if the space cannot be given back", async () => {
  for (const kind of ["truncate", "sync"] as const) {
    for (const end of ["close", "seal"] as const) {
      const { storage, log } = await openLarge();
      await log.append([preparedBatch("a")]);
      storage.hook = failNth(kind, 1, { errno: "EIO" });
      const ended = end === "close" ? log.close() : log.seal(() => {});
      await assert.rejects(ended, WriterPoisonedError, `${kind}, ${end}`);
      assert.deepEqual(await batchIdsOf(storage.crash(ALL_DONE)), ["large", "a"]);
    }
  }
});

test("each block of reserved space differs from any other, in the same tail and in others", () => {
  const keys = [1, 2].map((seed) => new Uint8Array(32).fill(0x80 + seed));
  const spaces = keys.map((key) => reservedSpace(key, RESERVING_TAIL_BYTES_MIN, RESERVED_BYTES));
  const sectors = spaces.flatMap((space) =>
    Array.from(
      { length: space.length / SECTOR_BYTES },
      (_, number) => space.toString("latin1", number * SECTOR_BYTES, (number + 1) * SECTOR_BYTES),
    )
  );
  assert.equal(new Set(sectors).size, sectors.length);
  for (const space of spaces) assert.ok(space.every((byte) => byte >= 0x80), "no LF, no zeros");
  const [offset, sizeBytes] = [RESERVING_TAIL_BYTES_MIN + 12345, 6789];
  const part = spaces[0]!.subarray(12345, 12345 + sizeBytes);
  assert.ok(reservedSpace(keys[0]!, offset, sizeBytes).equals(part), "the offset determines it");
});

test("the key of reserved space depends on the events of the tail", async () => {
  const keyOf = async (batchId: string) => {
    const storage = new SimulatedDisk();
    const { log } = await openTestLog(storage);
    await log.append([preparedBatch(batchId)]);
    return Buffer.from(await reservedKey(await storage.open(TAIL_FILE, "read"))).toString("hex");
  };
  assert.equal(await keyOf("a"), await keyOf("a"));
  assert.notEqual(await keyOf("a"), await keyOf("b"));
});

/** A tail whose process was killed after some commits in reserved space, and their offsets. */
async function killedTail(): Promise<{ tail: Buffer; offsets: number[] }> {
  const { storage, log } = await openLarge();
  for (const batchId of ["a", "b", "c", "d"]) await log.append([preparedBatch(batchId)]);
  const tail = tailOf(storage.tree());
  return { tail, offsets: commitOffsets(tail) };
}

const DAMAGES: Record<string, (tail: Buffer, offsets: readonly number[]) => Buffer> = {
  "zeros in place of the last three commits": (tail, offsets) =>
    tail.fill(0, offsets.at(-4), offsets.at(-1)),
  "zeros in place of the reserved space": (tail, offsets) => tail.fill(0, offsets.at(-1)),
  "zeros in place of all that follows": (tail, offsets) => tail.fill(0, offsets.at(-4)),
  "reserved space of another tail": (tail, offsets) => {
    const end = offsets.at(-1)!;
    reservedSpace(new Uint8Array(32).fill(0x81), end, tail.length - end).copy(tail, end);
    return tail;
  },
  "reserved space of another offset": (tail, offsets) => {
    const end = offsets.at(-1)!;
    return Buffer.concat([tail.subarray(0, end), tail.subarray(end + SECTOR_BYTES)]);
  },
};

for (const [name, damage] of Object.entries(DAMAGES)) {
  test(`openLog() and verifyLog() report ${name}`, async () => {
    const { tail, offsets } = await killedTail();
    const tree = withTail(LARGE_TAIL, damage(tail, offsets));
    const { report } = await verifyStorage(new SimulatedDisk(tree));
    assert.deepEqual([report.ok, report.remnants], [true, [TAIL_FILE]]);
    const { events, reports } = await readBack(new SimulatedDisk(tree));
    const lost = name.includes("three") || name.includes("all") ? 3 : 0;
    assert.equal(events.length, 5 - lost);
    assert.match(reports.join(), /^tail\.ndjson: removed \d+ bytes of an unfinished commit after /);
  });
}

test("append() reserves nothing while the start of the tail cannot be read", async () => {
  const { storage, log } = await openLarge();
  storage.hook = ({ kind, position }) =>
    kind === "read" && position === 0 ? { errno: "EIO" } : null;
  await log.append([preparedBatch("a")]);
  assert.doesNotMatch(textOf(storage), RESERVED);
  storage.hook = null;
  await log.append([preparedBatch("b")]);
  assert.match(textOf(storage), RESERVED);
  assert.deepEqual(await batchIdsOf(new SimulatedDisk(storage.tree())), ["large", "a", "b"]);
});
