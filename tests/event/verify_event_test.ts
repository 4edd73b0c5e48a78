import assert from "node:assert/strict";
import { test } from "node:test";
import { type CommittedEvent, verifyEvent } from "../../src/event/verify_event.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { appendTo, eventsOf } from "../support/test_log.ts";

/** Two events as replayed. The first one has an `occurred_at`. */
async function replayedEvents(): Promise<[CommittedEvent, CommittedEvent]> {
  const storage = new SimulatedDisk();
  const dated = { occurredAt: "2026-01-02T03:04:05.5Z", payload: { active: true } };
  await appendTo(storage, preparedBatch("a", { events: [dated, {}] }));
  const [first, second] = await eventsOf(storage);
  return [first!, second!];
}

const [DATED, UNDATED] = await replayedEvents();

test("verifyEvent() accepts events as replayed", async () => {
  for (const event of [DATED, UNDATED]) {
    assert.deepEqual(await verifyEvent(event), { contentHash: true, eventHash: true });
  }
});

test("verifyEvent() detects a changed payload by the content hash", async () => {
  const changed = { ...DATED, payload: { active: false } };
  assert.deepEqual(await verifyEvent(changed), { contentHash: false, eventHash: true });
});

test("verifyEvent() detects a change to any other member by the event hash", async () => {
  for (const name of Object.keys(DATED) as (keyof CommittedEvent)[]) {
    if (name === "payload") continue;
    const verification = await verifyEvent({ ...DATED, [name]: DATED[name] + "0" });
    assert.ok(!verification.eventHash, name);
    assert.equal(verification.contentHash, name !== "content_hash", name);
  }
});

test("verifyEvent() detects an added or removed occurred_at", async () => {
  const { occurred_at: occurredAt, ...without } = DATED;
  assert.ok(!(await verifyEvent(without)).eventHash);
  assert.ok(!(await verifyEvent({ ...UNDATED, occurred_at: occurredAt! })).eventHash);
});
