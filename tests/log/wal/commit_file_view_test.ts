/** Reads from a tail or pending file whose blocks are altered on disk. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../../src/log/log.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import { type LogSnapshot, readLines } from "../../../src/log/read/snapshot.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import { TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import { type Block, INDEX_INTERVAL_BYTES } from "../../../src/log/wal/sparse_index.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestLog } from "../../support/test_log.ts";

/** Size of a payload. A block holds two or three such events. */
const EVENT_BYTES = INDEX_INTERVAL_BYTES / 2;

/** A log whose tail has `events` commits of one event, read from the file. */
async function filledLog(events: number) {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const append = async (batchId: string) => {
    const events = [{ payload: "x".repeat(EVENT_BYTES) }];
    await log.append([preparedBatch(batchId, { events })]);
  };
  for (let number = 0; number < events; number++) await append(`${number}`);
  return { storage, log, append };
}

function idsIn(lines: string): string[] {
  return [...lines.matchAll(/^\{"event_id":"([^"]*)"/gm)].map((match) => match[1]!);
}

/** The ids of the events read, and the error that ends reading. */
async function read({ files }: LogSnapshot, after?: string, wantedBytes = 1e6) {
  const wanted = { after, filter: {}, wantedBytes: () => wantedBytes, memory: new ScanMemory() };
  const ids: string[] = [];
  try {
    for await (const chunk of readLines(files, wanted)) {
      ids.push(...idsIn(chunk.toString("latin1")).filter((id) => id > (after ?? "")));
    }
  } catch (error) {
    assert.ok(error instanceof CorruptLogError, String(error));
    return { ids, message: error.message };
  }
  return { ids, message: null };
}

/** The blocks in a tail, and the events in each block. */
function blocksOf(log: Log, storage: SimulatedDisk) {
  const tail = storage.contents(TAIL_FILE).toString("latin1");
  const { index, endBytes } = log.unsealed[0]!;
  const blocks: { start: number; end: number; ids: string[] }[] = [];
  for (let at = 0; at < endBytes; at = blocks.at(-1)!.end) {
    const [{ start, end }] = index.blocks(at, 1) as [Block];
    blocks.push({ start, end, ids: idsIn(tail.slice(start, end)) });
  }
  return blocks;
}

test("an altered block is not served, unlike those before and after it", async () => {
  const { storage, log } = await filledLog(9);
  const blocks = blocksOf(log, storage);
  assert.ok(blocks.length > 2);
  for (const [number, { start, end, ids }] of blocks.entries()) {
    const before = blocks.slice(0, number).flatMap((block) => block.ids);
    const later = blocks.slice(number + 1).flatMap((block) => block.ids);
    for (const bit of [8 * start, 4 * (start + end), 8 * end - 1]) {
      storage.flipBit(TAIL_FILE, bit);
      const message = `${TAIL_FILE}: corrupt at byte ${start} (to ${end}): ` +
        "the block does not match its CRC-32";
      for (const wantedBytes of [1, 1e6]) {
        const found = await read(log.snapshot, undefined, wantedBytes);
        assert.deepEqual(found, { ids: before, message });
      }
      // The read also covers the block of the event after which it starts.
      const expected = later.length === 0 ? [] : later.slice(1);
      const found = await read(log.snapshot, later[0] ?? ids.at(-1));
      assert.deepEqual(found, { ids: expected, message: null });
      storage.flipBit(TAIL_FILE, bit);
      assert.equal((await read(log.snapshot)).message, null);
    }
  }
  await log.close();
});

test("a snapshot is read while its last block grows", async () => {
  const { storage, log, append } = await filledLog(1);
  for (let number = 1; number < 9; number++) {
    const { snapshot } = log;
    const ids = idsIn(storage.contents(TAIL_FILE).toString("latin1"));
    await append(`${number}`);
    assert.deepEqual(await read(snapshot), { ids, message: null });
  }
  storage.flipBit(TAIL_FILE, 8 * storage.contents(TAIL_FILE).length - 1);
  assert.match((await read(log.snapshot)).message!, /does not match its CRC-32$/);
  await log.close();
});
