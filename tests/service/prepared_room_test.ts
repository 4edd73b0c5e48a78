/**
 * Regression: every admitted body was prepared at once and queued for the writer in canonical form,
 * which can be 4.4 times as large (for `1e20`). 200 bodies of 4 MiB took 3 GiB and killed a process
 * with less memory.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { PreparedRoom } from "../../src/service/prepared_room.ts";
import { Gate } from "../support/gate.ts";
import { preparedBatch } from "../support/prepared.ts";

const prepare = () => preparedBatch("b");
const { lines, envelopes } = prepare().events;
/** A budget that two batches exceed, but one does not. */
const LIMIT_BYTES = lines.length + envelopes.length + 1;

test("PreparedRoom.run() prepares no body while earlier ones use up the memory budget", async () => {
  const room = new PreparedRoom(LIMIT_BYTES);
  const gates = [new Gate(), new Gate(), new Gate(), new Gate()];
  const prepared: number[] = [];
  const runs = gates.map((gate, i) =>
    room.run(0, () => (prepared.push(i), prepare()), () => gate.opened)
  );
  await setImmediate();
  assert.deepEqual(prepared, [0, 1]);
  gates[1]!.open();
  await runs[1];
  await setImmediate();
  assert.deepEqual(prepared, [0, 1, 2]);
  for (const gate of gates) gate.open();
  await Promise.all(runs);
  assert.deepEqual(prepared, [0, 1, 2, 3]);
});

test("PreparedRoom.run() continues with the next body after a rejected one", async () => {
  const room = new PreparedRoom(LIMIT_BYTES);
  const gate = new Gate();
  const first = room.run(
    0,
    () => preparedBatch("b", { events: [{ payload: "x".repeat(200) }] }),
    () => gate.opened,
  );
  const refused = room.run(0, () => {
    throw new Error("not valid");
  }, () => Promise.resolve());
  const last = room.run(0, prepare, () => Promise.resolve("committed"));
  gate.open();
  await first;
  await assert.rejects(refused, /not valid/);
  assert.equal(await last, "committed");
});

test("PreparedRoom.run() releases its reservation when the commit fails", async () => {
  const room = new PreparedRoom(LIMIT_BYTES);
  for (let i = 0; i < 5; i++) {
    await assert.rejects(room.run(0, prepare, () => Promise.reject(new Error("disk"))), /disk/);
  }
  assert.equal(await room.run(0, prepare, () => Promise.resolve(1)), 1);
});
