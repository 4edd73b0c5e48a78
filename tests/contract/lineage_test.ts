/**
 * The first batch from a successor, which names the retired source that it continues, and the order
 * in which the states of a batch are checked.
 */
import assert from "node:assert/strict";
import { lineageMarker } from "../support/submitted.ts";
import { test } from "../support/tested_service.ts";
import {
  allEvents,
  assertError,
  batchWith,
  commit,
  event,
  ingest,
  NO_EVENT_ID,
  retire,
} from "./support/api.ts";
import { type Served, withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

/** The marker of a successor of `shop`, with `members` overridden or added. */
function marker(frontier: string, members: object = {}) {
  return { ...lineageMarker("shop", frontier), ...members };
}

/** A marker with `members` of its payload overridden or added. */
function marking(frontier: string, members: object) {
  const { payload } = lineageMarker("shop", frontier);
  return marker(frontier, { payload: Object.assign({}, payload, members) });
}

/** A batch submitted by the successor. */
function successor(events: unknown[], batchId = "b") {
  return batchWith({ source: "shop2", batch_id: batchId, events });
}

/** Commits a batch from `shop` and retires it. @returns its final frontier. */
async function retireShop(socketPath: string): Promise<string> {
  await commit(socketPath, batchWith({}));
  return (await retire(socketPath, "shop")).final_frontier;
}

/** Runs `use` with a log whose source `shop` is retired. */
function withRetired(use: (served: Served, frontier: string) => Promise<void>): Promise<void> {
  return withService(async (served) => await use(served, await retireShop(served.socketPath)));
}

test("a first batch that begins with a marker is committed with it as an ordinary event", () =>
  withRetired(async ({ socketPath }, frontier) => {
    const batch = successor([marker(frontier), event()]);
    const receipt = await commit(socketPath, batch);
    assert.equal(receipt.events, 2);
    const committed = (await allEvents(socketPath)).at(-2)!;
    const expected = { ...marker(frontier), event_id: receipt.first_event_id, source: "shop2" };
    assert.deepEqual({ ...committed, ...expected }, committed);
    await commit(socketPath, successor([event()], "b2"));
    const duplicate = { ...receipt, status: "duplicate" };
    assert.deepEqual((await ingest(socketPath, batch)).json(), duplicate);
  }));

test("a source needs no predecessor, and its first batch needs no marker", () =>
  withRetired(async ({ socketPath }, frontier) => {
    const other = marker(frontier, { stream: "service.source_lineage2", payload: null });
    await commit(socketPath, successor([event(), other]));
  }));

const MALFORMED: Record<string, (frontier: string) => unknown[]> = {
  "is the first event": (frontier) => [event(), marker(frontier)],
  "occurs once": (frontier) => [marker(frontier), marker(frontier)],
  "occurs once in the batch": (frontier) => [marker(frontier), event(), marker(frontier)],
  "omits occurred_at": (frontier) => [marker(frontier, { occurred_at: "2026-01-01T00:00:00Z" })],
  "has the kind source_succeeded": (frontier) => [marker(frontier, { kind: "upserted" })],
  "has the predecessor as its record_key": (frontier) => [marker(frontier, { record_key: "x" })],
  "has a payload with v": (frontier) => [marking(frontier, { v: undefined })],
  "has a numeric v": (frontier) => [marking(frontier, { v: "1" })],
  "has v 1": (frontier) => [marking(frontier, { v: 2 })],
  "has no unknown payload member": (frontier) => [marking(frontier, { x: 1 })],
  "has an object as its payload": () => [marker("", { payload: null })],
  "does not have an array as its payload": () => [marker("", { payload: [1, 2, 3] })],
  "names a predecessor": (frontier) => [marking(frontier, { predecessor_source: undefined })],
  "names a predecessor as a string": (frontier) => [marking(frontier, { predecessor_source: 1 })],
  "names a frontier": () => [marking("", { predecessor_final_frontier: undefined })],
  "names a frontier as a string": () => [marking("", { predecessor_final_frontier: null })],
  "names a frontier that is an event id": () => [marker("latest")],
  "names a valid source": (frontier) => [lineageMarker("A", frontier)],
  "does not name system": (frontier) => [lineageMarker("system", frontier)],
  "does not name its own source": (frontier) => [lineageMarker("shop2", frontier)],
};

for (const [rule, events] of Object.entries(MALFORMED)) {
  test(`a marker ${rule}, otherwise invalid_source_lineage`, () =>
    withRetired(async ({ socketPath }, frontier) => {
      const reply = await ingest(socketPath, successor(events(frontier)));
      assertError(reply, "invalid_source_lineage");
      assert.equal((await allEvents(socketPath)).length, 2);
    }));
}

function conflict(predecessor: string, expected: string, actual: string | null) {
  return {
    source: "shop2",
    predecessor_source: predecessor,
    expected_predecessor_frontier: expected,
    actual_predecessor_frontier: actual,
  };
}

test("a marker with a wrong predecessor frontier is a source_lineage_conflict", () =>
  withRetired(async ({ socketPath }, frontier) => {
    const reply = await ingest(socketPath, successor([marker(NO_EVENT_ID), event()]));
    assertError(reply, "source_lineage_conflict", conflict("shop", NO_EVENT_ID, frontier));
    assert.equal((await allEvents(socketPath)).length, 2);
  }));

test("a marker for a source that is active or has no events is a source_lineage_conflict", () =>
  withService(async ({ socketPath }) => {
    const batch = (frontier: string) => successor([marker(frontier)]);
    const unknown = await ingest(socketPath, batch(NO_EVENT_ID));
    assertError(unknown, "source_lineage_conflict", conflict("shop", NO_EVENT_ID, null));
    const { last_event_id } = await commit(socketPath, batchWith({}));
    const active = await ingest(socketPath, batch(last_event_id));
    assertError(active, "source_lineage_conflict", conflict("shop", last_event_id, null));
    await retire(socketPath, "shop");
    await commit(socketPath, batch(last_event_id));
  }));

test("a marker is a source_lineage_conflict once the successor has committed events", () =>
  withRetired(async ({ socketPath }, frontier) => {
    await commit(socketPath, successor([event()], "b1"));
    const reply = await ingest(socketPath, successor([marker(frontier)], "b2"));
    assertError(reply, "source_lineage_conflict", conflict("shop", frontier, frontier));
  }));

test("a predecessor may have several successors, and a successor may have its own", () =>
  withRetired(async ({ socketPath }, frontier) => {
    await commit(socketPath, successor([marker(frontier)]));
    await commit(socketPath, batchWith({ source: "shop3", events: [marker(frontier)] }));
    const { final_frontier } = await retire(socketPath, "shop2");
    const next = lineageMarker("shop2", final_frontier);
    await commit(socketPath, batchWith({ source: "shop4", events: [next] }));
  }));

test("a batch's identity is checked first, then retirement, lineage and the precondition", () =>
  withRetired(async ({ socketPath }, frontier) => {
    const precondition = { stream: "service.source_lineage", expected_frontier: NO_EVENT_ID };
    const batch = { ...successor([marker(NO_EVENT_ID)], "b2"), stream_precondition: precondition };
    const context = conflict("shop", NO_EVENT_ID, frontier);
    assertError(await ingest(socketPath, batch), "source_lineage_conflict", context);
    await commit(socketPath, successor([event()], "b1"));
    const { final_frontier, retirement_event_id } = await retire(socketPath, "shop2");
    const retired = { source: "shop2", final_frontier, retirement_event_id };
    assertError(await ingest(socketPath, batch), "source_retired", retired);
    const known = await ingest(socketPath, { ...batch, batch_id: "b1" });
    assertError(known, "batch_id_conflict", { source: "shop2", batch_id: "b1" });
  }));

test("batches are checked against the durable log after a restart", () =>
  withServedLog(async ({ socketPath, storage, shutDown }) => {
    const first = batchWith({});
    const receipt = await commit(socketPath, first);
    const { final_frontier } = await retire(socketPath, "shop");
    const { last_event_id } = await commit(socketPath, batchWith({ source: "crm" }));
    await shutDown();
    await withServedLog(async ({ socketPath }) => {
      const duplicate = { ...receipt, status: "duplicate" };
      assert.deepEqual((await ingest(socketPath, first)).json(), duplicate);
      const wrong = await ingest(socketPath, successor([marker(NO_EVENT_ID)]));
      const context = conflict("shop", NO_EVENT_ID, final_frontier);
      assertError(wrong, "source_lineage_conflict", context);
      await commit(socketPath, successor([marker(final_frontier)]));
      const conditional = (expected_frontier: string | null) =>
        batchWith({
          source: "crm",
          batch_id: "2",
          stream_precondition: { stream: "orders", expected_frontier },
        });
      const late = await ingest(socketPath, conditional(null));
      assert.equal(late.json().actual_frontier, last_event_id);
      await commit(socketPath, conditional(last_event_id));
    }, { storage });
  }));
