/**
 * Regression: every admitted body was prepared at once and queued for the writer in canonical form,
 * which can be 4.4 times as large (for `1e20`). 200 bodies of 4 MiB took 3 GiB and killed a process
 * with less memory.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { PREPARED_BYTES_MAX, PreparedRoom } from "../../src/service/batch_preparer.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { openTestService } from "../support/test_service.ts";

const EMPTY = new Uint8Array(0);
const { lines, envelopes } = preparedBatch("b").events;
/** A budget that two batches exceed, but one does not. */
const LIMIT_BYTES = lines.length + envelopes.length + 1;

test("PreparedRoom.prepare() waits while earlier batches use up the memory budget", async () => {
  let prepared = 0;
  const room = new PreparedRoom(() => {
    prepared += 1;
    return preparedBatch("b");
  }, LIMIT_BYTES);
  const [first, second, ...others] = [1, 2, 3, 4].map(() => room.prepare(EMPTY));
  await setImmediate();
  assert.equal(prepared, 2);
  (await second!).release();
  await setImmediate();
  assert.equal(prepared, 3);
  (await first!).release();
  for (const other of others) (await other).release();
  assert.equal(prepared, 4);
});

test("PreparedRoom.prepare() continues with the next body after a rejected one", async () => {
  const room = new PreparedRoom((body) => {
    if (body.length > 0) throw new Error("not valid");
    return preparedBatch("b", { events: [{ payload: "x".repeat(200) }] });
  }, LIMIT_BYTES);
  const first = await room.prepare(EMPTY);
  const refused = room.prepare(Uint8Array.of(1));
  const last = room.prepare(EMPTY);
  first.release();
  await assert.rejects(refused, /not valid/);
  (await last).release();
});

test("ingest() releases the memory of a batch whose commit fails", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const payload = "x".repeat(60_000);
  const event = { stream: "s", record_key: "k", kind: "u", payload };
  const body = Buffer.from(JSON.stringify({ source: "a", batch_id: "b", events: [event] }));
  storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
  for (let bytes = 0; bytes <= PREPARED_BYTES_MAX; bytes += payload.length) {
    await assert.rejects(service.ingest(body), /the disk is full/);
  }
  storage.hook = null;
  assert.equal((await service.ingest(body)).status, "committed");
  await service.close();
});
