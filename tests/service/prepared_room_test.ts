/**
 * The bug: every admitted body was prepared at once and waited for the writer in its canonical
 * form, which has up to 4.4 times the bytes (`1e20`). 200 bodies of 4 MiB took 3 GiB, and ended a
 * process with less.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { PreparedRoom } from "../../src/service/prepared_room.ts";
import { Gate } from "../support/gate.ts";
import { preparedBatch } from "../support/prepared.ts";

const LIMIT_CHARS = 100;

/** A batch whose payload has 60 characters: two of them fill the room. */
const prepare = () => preparedBatch("b", { events: [{ payload: "x".repeat(58) }] });

test("PreparedRoom.run() prepares at once while there is room", () => {
  const room = new PreparedRoom(LIMIT_CHARS);
  const never = new Promise<never>(() => {});
  let prepared = 0;
  for (let i = 0; i < 2; i++) {
    void room.run(() => (prepared += 1, prepare()), () => never);
  }
  assert.equal(prepared, 2);
});

test("PreparedRoom.run() prepares no body while those before fill the room", async () => {
  const room = new PreparedRoom(LIMIT_CHARS);
  const gates = [new Gate(), new Gate(), new Gate(), new Gate()];
  const prepared: number[] = [];
  const runs = gates.map((gate, i) =>
    room.run(() => (prepared.push(i), prepare()), () => gate.opened)
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

test("PreparedRoom.run() takes the next body after one that is refused", async () => {
  const room = new PreparedRoom(LIMIT_CHARS);
  const gate = new Gate();
  const first = room.run(
    () => preparedBatch("b", { events: [{ payload: "x".repeat(200) }] }),
    () => gate.opened,
  );
  const refused = room.run(() => {
    throw new Error("not valid");
  }, () => Promise.resolve());
  const last = room.run(prepare, () => Promise.resolve("committed"));
  gate.open();
  await first;
  await assert.rejects(refused, /not valid/);
  assert.equal(await last, "committed");
});

test("PreparedRoom.run() gives the room back when the commit fails", async () => {
  const room = new PreparedRoom(LIMIT_CHARS);
  for (let i = 0; i < 5; i++) {
    await assert.rejects(room.run(prepare, () => Promise.reject(new Error("disk"))), /disk/);
  }
  assert.equal(await room.run(prepare, () => Promise.resolve(1)), 1);
});
