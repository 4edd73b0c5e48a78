/** `stream_precondition` in `POST /v1/events`. */
import assert from "node:assert/strict";
import { test } from "../support/tested_service.ts";
import {
  allEvents,
  assertError,
  batchWith,
  commit,
  event,
  ingest,
  NO_EVENT_ID,
} from "./support/api.ts";
import { withService } from "./support/served.ts";

/** A batch for stream `orders` that expects a frontier. */
function conditional(batchId: string, expectedFrontier: string | null, members: object = {}) {
  return batchWith({
    batch_id: batchId,
    stream_precondition: { stream: "orders", expected_frontier: expectedFrontier },
    ...members,
  });
}

function conflict(expected: string | null, actual: string | null, source = "shop") {
  return { source, stream: "orders", expected_frontier: expected, actual_frontier: actual };
}

test("expected_frontier matches the stream's latest event; null matches an empty stream", () =>
  withService(async ({ socketPath }) => {
    await commit(socketPath, batchWith({ batch_id: "1", source: "other" }));
    const first = await commit(socketPath, conditional("1", null));
    await commit(socketPath, batchWith({ batch_id: "2", events: [event({ stream: "items" })] }));
    const events = [event(), event()];
    const third = await commit(socketPath, conditional("3", first.last_event_id, { events }));
    await commit(socketPath, conditional("4", third.last_event_id));
  }));

test("a mismatch is a stream_frontier_conflict with both frontiers, and nothing is written", () =>
  withService(async ({ socketPath }) => {
    assertError(
      await ingest(socketPath, conditional("0", NO_EVENT_ID)),
      "stream_frontier_conflict",
      conflict(NO_EVENT_ID, null),
    );
    const { last_event_id: first } = await commit(socketPath, batchWith({ batch_id: "1" }));
    const { last_event_id: second } = await commit(socketPath, batchWith({ batch_id: "2" }));
    for (const expected of [null, first, NO_EVENT_ID]) {
      assertError(
        await ingest(socketPath, conditional("3", expected)),
        "stream_frontier_conflict",
        conflict(expected, second),
      );
    }
    assert.equal((await allEvents(socketPath)).length, 2);
    await commit(socketPath, conditional("3", second));
  }));

test("a committed batch is a duplicate regardless of its precondition", () =>
  withService(async ({ socketPath }) => {
    const batch = conditional("1", null);
    const receipt = await commit(socketPath, batch);
    await commit(socketPath, batchWith({ batch_id: "2" }));
    const duplicate = { ...receipt, status: "duplicate" };
    for (const retried of [batch, conditional("1", NO_EVENT_ID), batchWith({ batch_id: "1" })]) {
      assert.deepEqual((await ingest(socketPath, retried)).json(), duplicate);
    }
  }));

test("if clients race on one expected frontier, one commits and the others get its event id", () =>
  withService(async ({ socketPath }) => {
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, n) => ingest(socketPath, conditional(`${n}`, null))),
    );
    const committed = replies.filter((reply) => reply.status === 200);
    assert.equal(committed.length, 1);
    const { last_event_id } = committed[0]!.json();
    for (const reply of replies.filter((reply) => reply.status !== 200)) {
      assertError(reply, "stream_frontier_conflict", conflict(null, last_event_id));
    }
  }));
