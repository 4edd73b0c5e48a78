/**
 * Requests that cause every kind of response from the API, in order, on a new log. The responses
 * are the examples in `docs/openapi.yaml`.
 */
import { INGEST_BODY_BYTES_MAX } from "../../../src/limits.ts";
import { failNth } from "../../support/storage_faults.ts";
import { lineageMarker } from "../../support/submitted.ts";
import { NO_EVENT_ID } from "./api.ts";
import type { TourStop } from "./tour.ts";

/** The id that the log assigns with a deterministic clock and deterministic randomness. */
function eventId(n: number): string {
  return `019b76da-a800-7001-8203-0405060708${(9 + n).toString(16).padStart(2, "0")}`;
}

/** Request bodies that also serve as examples, by name. */
export const TOUR_BODIES: Record<string, unknown> = {
  batch: {
    source: "shop",
    batch_id: "2026-01-31/1",
    events: [
      {
        stream: "orders",
        record_key: "1001",
        kind: "upserted",
        occurred_at: "2025-12-31T23:59:58.5Z",
        payload: { total: 42.5, items: ["tea", "cup"] },
      },
      { stream: "items", record_key: "tea", kind: "deleted", payload: null },
    ],
  },
  conditional_batch: {
    source: "shop",
    batch_id: "2026-01-31/2",
    stream_precondition: { stream: "orders", expected_frontier: eventId(0) },
    events: [{ stream: "orders", record_key: "1001", kind: "paid", payload: { total: 42.5 } }],
  },
  retirement: { source: "shop" },
  successor_batch: {
    source: "shop2",
    batch_id: "1",
    events: [
      lineageMarker("shop", eventId(2)),
      { stream: "orders", record_key: "1002", kind: "upserted", payload: { total: 7 } },
    ],
  },
};

const EVENT = { stream: "orders", record_key: "1003", kind: "upserted", payload: {} };
const SMALL_BATCH = { source: "shop", batch_id: "2026-01-31/3", events: [EVENT] };
const MARKER = lineageMarker("shop", eventId(0));
const RETIRE = "/v1/sources/retire";

export const TOUR: readonly TourStop[] = [
  ["empty_page", {}],
  [null, { path: "/v1/streams" }],
  ["committed", { body: TOUR_BODIES.batch }],
  ["duplicate", { body: TOUR_BODIES.batch }],
  ["batch_id_conflict", { body: { ...SMALL_BATCH, batch_id: "2026-01-31/1" } }],
  [null, { body: TOUR_BODIES.conditional_batch }],
  ["stream_frontier_conflict", {
    body: {
      ...SMALL_BATCH,
      stream_precondition: { stream: "orders", expected_frontier: eventId(0) },
    },
  }],
  ["invalid_request", { body: { ...SMALL_BATCH, mode: "replace" } }],
  ["invalid_request_in_event", {
    body: '{"source":"shop","batch_id":"1","events":[{"kind":"a","kind":"b"}]}',
  }],
  ["invalid_batch", { body: { ...SMALL_BATCH, batch_id: "service/1" } }],
  [null, { body: {} }],
  [null, { body: { ...SMALL_BATCH, v: 2 } }],
  [null, { body: { ...SMALL_BATCH, source: "system" } }],
  [null, { body: { ...SMALL_BATCH, events: [] } }],
  [null, { body: { ...SMALL_BATCH, stream_precondition: {} } }],
  ["invalid_events", {
    body: { ...SMALL_BATCH, events: [{ ...EVENT, kind: "" }, EVENT, { stream: "A" }] },
  }],
  ["invalid_source_lineage", { body: { source: "shop2", batch_id: "1", events: [EVENT, MARKER] } }],
  ["replay_page", { path: "/v1/events?stream=orders&limit=1" }],
  [null, { path: "/v1/events" }],
  [null, { path: "/v1/events", method: "HEAD" }],
  [null, { path: "/v1/events?follow=true", method: "HEAD" }],
  ["unknown_parameter", { path: "/v1/events?offset=10" }],
  ["invalid_replay_request", { path: "/v1/events?limit=0" }],
  [null, { path: "/v1/events?limit=0", method: "HEAD" }],
  ["internal_error", { path: "/v1/events?kind=unreadable" }],
  [null, { path: "/v1/events?kind=unreadable", method: "HEAD" }],
  ["streams_page", { path: "/v1/streams?limit=1" }],
  ["last_streams_page", { path: `/v1/streams?after=shop/items&through=${eventId(2)}` }],
  [null, { path: "/v1/streams", method: "HEAD" }],
  ["invalid_streams_request", { path: "/v1/streams?after=shop/items" }],
  [null, { path: "/v1/streams?x=1" }],
  ["stream_anchor_unavailable", { path: `/v1/streams?through=${NO_EVENT_ID}` }],
  [null, { path: "/v1/streams?source=unreadable" }],
  [null, { path: RETIRE, body: {} }],
  [null, { path: RETIRE, body: { source: "shop", x: 1 } }],
  ["retired", { path: RETIRE, body: TOUR_BODIES.retirement }],
  ["already_retired", { path: RETIRE, body: TOUR_BODIES.retirement }],
  ["source_not_found", { path: RETIRE, body: { source: "crm" } }],
  ["invalid_source_retirement", { path: RETIRE, body: { source: "system" } }],
  [null, { path: RETIRE, body: "{" }],
  ["source_retired", { body: SMALL_BATCH }],
  ["source_lineage_conflict", { body: { source: "shop2", batch_id: "1", events: [MARKER] } }],
  [null, { body: TOUR_BODIES.successor_batch }],
  [null, { path: "/v1/events" }],
  ["unauthorized", { headers: { authorization: "Bearer guess" } }],
  ...["/v1/events", "/v1/streams", RETIRE].flatMap((path): TourStop[] => [
    [null, { path, headers: { authorization: "" } }],
    [null, { path, method: "HEAD", headers: { authorization: "" } }],
    [null, { path, method: "PUT" }],
  ]),
  [null, { body: SMALL_BATCH, headers: { authorization: "" } }],
  [null, { path: RETIRE, body: {}, headers: { authorization: "" } }],
  ["not_found", { path: "/v1/query" }],
  ["method_not_allowed", { method: "DELETE" }],
  ["unsupported_media_type", {
    body: "a=b",
    headers: { "content-type": "application/x-www-form-urlencoded" },
  }],
  [null, { path: RETIRE, body: "{}", headers: { "content-encoding": "gzip" } }],
  ["body_too_large", { body: new Uint8Array(INGEST_BODY_BYTES_MAX + 1) }],
  [null, { path: RETIRE, body: new Uint8Array(INGEST_BODY_BYTES_MAX) }],
  ["too_many_events", { body: { ...SMALL_BATCH, events: Array(10_001).fill(EVENT) } }],
  ["overloaded", { body: new Uint8Array(INGEST_BODY_BYTES_MAX) }, (tour) => tour.fillRoom()],
  [null, { path: "/v1/events?follow=true&kind=overloaded" }],
  ["storage_full", { body: { ...SMALL_BATCH, source: "shop2" } }, (tour) => {
    tour.freeRoom();
    tour.storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
  }],
  [null, { path: RETIRE, body: { source: "shop2" } }],
  [
    "writer_poisoned",
    { body: { ...SMALL_BATCH, source: "shop2" } },
    ({ storage }) => void (storage.hook = failNth("sync", 1, { errno: "EIO" })),
  ],
  [null, { path: RETIRE, body: { source: "shop2" } }],
];
