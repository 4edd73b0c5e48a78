import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../src/event/api_error.ts";
import { prepareBatch } from "../../src/event/batch.ts";

const FRONTIER = "019b7c4e-2d37-7a01-8f00-000000000001";
const PAYLOAD = { v: 1, predecessor_source: "old", predecessor_final_frontier: FRONTIER };
const MARKER = {
  stream: "service.source_lineage",
  record_key: "old",
  kind: "source_succeeded",
  payload: PAYLOAD,
};
const EVENT = { stream: "s", record_key: "k", kind: "upserted", payload: {} };

function prepare(events: unknown[]) {
  const body = { batch_id: "b", source: "new", events };
  return prepareBatch(new TextEncoder().encode(JSON.stringify(body)));
}

test("lineageMarker() reads the marker of a first event", () => {
  const lineage = { predecessorSource: "old", predecessorFinalFrontier: FRONTIER };
  assert.deepEqual(prepare([MARKER]).lineage, lineage);
  assert.deepEqual(prepare([MARKER, EVENT]).lineage, lineage);
});

test("lineageMarker() finds none in other batches", () => {
  assert.equal(
    prepare([EVENT, { ...MARKER, stream: "service.source_lineage2" }]).lineage,
    undefined,
  );
});

const REFUSED: [title: string, events: unknown[]][] = [
  ["not the first event", [EVENT, MARKER]],
  ["repeated", [MARKER, MARKER]],
  ["repeated later", [MARKER, EVENT, MARKER]],
  ["another kind", [{ ...MARKER, kind: "upserted" }]],
  ["with occurred_at", [{ ...MARKER, occurred_at: "2026-01-02T03:04:05Z" }]],
  ["record_key of another source", [{ ...MARKER, record_key: "other" }]],
  ["payload not an object", [{ ...MARKER, payload: [1, 2, 3] }]],
  ["payload null", [{ ...MARKER, payload: null }]],
  ["payload with more members", [{ ...MARKER, payload: { ...PAYLOAD, more: 1 } }]],
  ["payload without v", [{ ...MARKER, payload: { ...PAYLOAD, v: undefined } }]],
  ["payload of another v", [{ ...MARKER, payload: { ...PAYLOAD, v: 2 } }]],
  ["payload with v as text", [{ ...MARKER, payload: { ...PAYLOAD, v: "1" } }]],
  ["no predecessor", [{ ...MARKER, payload: { ...PAYLOAD, predecessor_source: undefined } }]],
  ["predecessor of a wrong type", [{ ...MARKER, payload: { ...PAYLOAD, predecessor_source: 1 } }]],
  [
    "predecessor with a bad name",
    [{ ...MARKER, record_key: "Old", payload: { ...PAYLOAD, predecessor_source: "Old" } }],
  ],
  [
    "the system source as predecessor",
    [{ ...MARKER, record_key: "system", payload: { ...PAYLOAD, predecessor_source: "system" } }],
  ],
  [
    "its own source",
    [{ ...MARKER, record_key: "new", payload: { ...PAYLOAD, predecessor_source: "new" } }],
  ],
  ["frontier null", [{ ...MARKER, payload: { ...PAYLOAD, predecessor_final_frontier: null } }]],
  ["frontier no id", [{ ...MARKER, payload: { ...PAYLOAD, predecessor_final_frontier: "x" } }]],
];

test("lineageMarker() answers invalid_source_lineage for a bad marker", () => {
  for (const [title, events] of REFUSED) {
    assert.throws(
      () => prepare(events),
      (error) => error instanceof ApiError && error.code === "invalid_source_lineage",
      title,
    );
  }
});
