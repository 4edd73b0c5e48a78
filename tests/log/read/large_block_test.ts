/** A scan reserves the memory of a block that holds a large event, and releases it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { READ_CHUNK_BYTES } from "../../../src/limits.ts";
import type { EventFilter } from "../../../src/log/line/stored_line.ts";
import { EventScan } from "../../../src/log/read/event_scan.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestLog, WHOLE } from "../../support/test_log.ts";

const LARGE_BYTES = 4 * READ_CHUNK_BYTES;
const LARGE = { recordKey: "large", payload: "x".repeat(LARGE_BYTES) };
const SMALL = { recordKey: "small" };

/** Scans a log of two large events with small ones between them. */
async function scanOf(filter: EventFilter) {
  const { log } = await openTestLog(new SimulatedDisk());
  await log.append([preparedBatch("b", { events: [SMALL, LARGE, SMALL, LARGE, SMALL] })]);
  const held: number[] = [];
  const reserve = (bytes: number) => {
    held.push(bytes);
    return Promise.resolve(() => void held.splice(held.indexOf(bytes), 1));
  };
  return { scan: new EventScan(log.snapshot, { ...WHOLE, filter, reserve }), held };
}

test("a large block is reserved until the next events are read", async () => {
  const { scan, held } = await scanOf({});
  let most = 0;
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    const heldBytes = held.reduce((sum, bytes) => sum + bytes, 0);
    assert.ok(piece.length <= Math.max(heldBytes, READ_CHUNK_BYTES), `${piece.length} ${held}`);
    most = Math.max(most, held.length);
  }
  assert.equal(most, 1);
  assert.deepEqual(held, []);
});

test("a large block is released by close(), and before the next one if nothing in it matches", async () => {
  const { scan, held } = await scanOf({ recordKey: "large" });
  assert.ok((await scan.next())!.length > LARGE_BYTES);
  assert.equal(held.length, 1);
  scan.close();
  assert.deepEqual(held, []);
  const without = await scanOf({ kind: "nothing" });
  assert.equal(await without.scan.next(), null);
  assert.deepEqual(without.held, []);
});

test("a small event does not keep a large block in memory", async () => {
  const { scan, held } = await scanOf({ recordKey: "small" });
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    assert.ok(piece.buffer.byteLength <= READ_CHUNK_BYTES);
    assert.deepEqual(held, []);
  }
});

test("a file that is sealed while a scan waits for memory is read from its segments", async () => {
  const { log } = await openTestLog(new SimulatedDisk());
  await log.append([preparedBatch("b", { events: [SMALL, LARGE, SMALL] })]);
  let sealing: Promise<void> | undefined;
  const reserve = async () => {
    await (sealing ??= log.seal(() => {}));
    return () => {};
  };
  const scan = new EventScan(log.snapshot, { ...WHOLE, reserve });
  let readBytes = 0;
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    readBytes += piece.length;
  }
  assert.ok(readBytes > LARGE_BYTES);
  assert.equal(scan.lastEventId, log.snapshot.frontier);
});

test("a page that has events ends before a large block for which there is no memory", async () => {
  const { log } = await openTestLog(new SimulatedDisk());
  const filled = { ...SMALL, payload: "x".repeat(READ_CHUNK_BYTES / 2) };
  const [committed] = await log.append([preparedBatch("a", { events: [filled] })]);
  const { last_event_id: first } = committed!;
  await log.append([preparedBatch("b", { events: [LARGE] })]);
  const reserve = () => Promise.reject(new Error("no memory"));
  const scan = new EventScan(log.snapshot, { ...WHOLE, reserve });
  assert.ok((await scan.next())!.length > 0);
  assert.equal(await scan.next(), null);
  assert.deepEqual([scan.limitReached, scan.nextAfter], [true, first]);
  const rest = new EventScan(log.snapshot, { ...WHOLE, after: first, reserve });
  await assert.rejects(rest.next(), /no memory/);
});
