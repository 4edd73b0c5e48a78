import assert from "node:assert/strict";
import { test } from "node:test";
import { type CommittedEvent, verifyEvent } from "../../src/event/verify_event.ts";
import { sealEvent } from "../support/prepared.ts";
import { EVENT_IDS, EVENTS, IDENTITY } from "./support/worked_example.ts";

function committed(index: number): CommittedEvent {
  return JSON.parse(sealEvent(IDENTITY, EVENTS[index]!, EVENT_IDS[index]!).line);
}

test("verifyEvent() accepts events as replayed", async () => {
  for (const index of EVENTS.keys()) {
    assert.deepEqual(await verifyEvent(committed(index)), { contentHash: true, eventHash: true });
  }
});

test("verifyEvent() detects a changed payload by the content hash", async () => {
  const changed = { ...committed(0), payload: { active: false } };
  assert.deepEqual(await verifyEvent(changed), { contentHash: false, eventHash: true });
});

test("verifyEvent() detects a change to any other member by the event hash", async () => {
  const event = committed(0);
  for (const name of Object.keys(event) as (keyof CommittedEvent)[]) {
    if (name === "payload") continue;
    const verification = await verifyEvent({ ...event, [name]: event[name] + "0" });
    assert.ok(!verification.eventHash, name);
    assert.equal(verification.contentHash, name !== "content_hash", name);
  }
});

test("verifyEvent() detects an added or removed occurred_at", async () => {
  const { occurred_at: occurredAt, ...without } = committed(0);
  assert.ok(!(await verifyEvent(without)).eventHash);
  const added = { ...committed(1), occurred_at: occurredAt! };
  assert.ok(!(await verifyEvent(added)).eventHash);
});
