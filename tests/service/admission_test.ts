import assert from "node:assert/strict";
import { test } from "node:test";
import { Admission, type Reservation } from "../../src/service/admission.ts";

const OVERLOADED = { code: "overloaded" };

/** Admits bodies of up to 60 bytes in total, and reserves 40 so that one body can always finish. */
function admission(limits: object = {}): Admission {
  return new Admission({
    totalBytes: 100,
    bodyBytes: 40,
    waitersMax: 2,
    admitWaitMs: 5,
    growWaitMs: 5,
    ...limits,
  });
}

const PATIENT = { admitWaitMs: 60_000, growWaitMs: 60_000 };

/** Records the order in which promises settle. */
function settled(order: string[], name: string, promise: void | object | Promise<unknown>) {
  return Promise.resolve(promise).then(() => void order.push(name));
}

test("Admission.admit() rejects at once when too many bodies are waiting", async () => {
  const room = admission(PATIENT);
  const first = room.admit(60) as Reservation;
  const waiting = [room.admit(1), room.admit(1)];
  assert.throws(() => room.admit(1), OVERLOADED);
  room.release(first);
  await Promise.all(waiting);
});

test("Admission.admit() admits bodies in order of arrival, even before smaller ones", async () => {
  const room = admission(PATIENT);
  const first = room.admit(40) as Reservation;
  const order: string[] = [];
  const large = settled(order, "large", room.admit(40));
  const small = settled(order, "small", room.admit(10));
  room.release(first);
  await Promise.all([large, small]);
  assert.deepEqual(order, ["large", "small"]);
});

test("Admission.admit() admits the next body when the first times out", async () => {
  const room = admission({ admitWaitMs: 5 });
  room.admit(30);
  const tooLarge = Promise.resolve(room.admit(40));
  const fitting = Promise.resolve(room.admit(30));
  await assert.rejects(tooLarge, OVERLOADED);
  assert.equal((await fitting).bytes, 30);
});

test("Admission.grow() takes precedence over bodies not yet admitted", async () => {
  const room = admission(PATIENT);
  const first = room.admit(20) as Reservation;
  const second = room.admit(20) as Reservation;
  const third = room.admit(20) as Reservation;
  await room.grow(first, 40);
  const order: string[] = [];
  const arriving = settled(order, "arriving", room.admit(20));
  const growing = settled(order, "growing", room.grow(second, 40));
  room.release(first);
  room.release(third);
  await Promise.all([arriving, growing]);
  assert.deepEqual(order, ["growing", "arriving"]);
});

test("Admission.grow() times out and keeps its reservation", async () => {
  const room = admission();
  const [first, second] = [room.admit(30) as Reservation, room.admit(30) as Reservation];
  await room.grow(first, 40);
  await assert.rejects(async () => await room.grow(second, 40), OVERLOADED);
  assert.equal(room.heldBytes, 70);
});

test("Admission never exceeds its limit and eventually serves every body", async () => {
  const room = admission(PATIENT);
  let heldMaxBytes = 0;
  const note = () => heldMaxBytes = Math.max(heldMaxBytes, room.heldBytes);
  const body = async (bytes: number) => {
    const reservation = await room.admit(Math.min(bytes, 5));
    for (let size = 5; size < bytes; size += 5) {
      await room.grow(reservation, Math.min(size + 5, bytes));
      note();
      await Promise.resolve();
    }
    room.release(reservation);
  };
  for (let round = 0; round < 20; round++) {
    const sizes = [40, 3, 40, 17, 40, 39];
    // Up to two bodies wait for admission while others are only partially received.
    await Promise.all(sizes.map(body));
  }
  assert.ok(heldMaxBytes > 60 && heldMaxBytes <= 100, `${heldMaxBytes} bytes use the reserve`);
  assert.equal(room.heldBytes, 0);
});

test("Admission.admit() admits whole small bodies within a budget of their own", async () => {
  const room = admission({ totalBytes: 1024, bodyBytes: 512 });
  const large = room.admit(512) as Reservation;
  await assert.rejects(async () => await room.admit(4), OVERLOADED);
  const isWhole = true;
  await assert.rejects(async () => await room.admit(5, isWhole), OVERLOADED);
  const small = Array.from({ length: 32 }, () => room.admit(4, isWhole) as Reservation);
  await assert.rejects(async () => await room.admit(4, isWhole), OVERLOADED);
  assert.equal(room.heldBytes, 512 + 32 * 4);
  room.release(small[0]!);
  assert.equal((room.admit(4, isWhole) as Reservation).bytes, 4);
  room.release(large);
});

test("Admission.tryAdmit() does not wait, nor overtake those that do", async () => {
  const room = admission(PATIENT);
  const first = room.tryAdmit(60)!;
  assert.equal(room.tryAdmit(1), null);
  const waiting = room.admit(60);
  room.release(first);
  assert.equal(room.tryAdmit(1), null);
  room.release(await waiting);
  assert.equal(room.tryAdmit(1)?.bytes, 1);
});
