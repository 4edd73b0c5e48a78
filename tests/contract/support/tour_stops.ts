/**
 * Requests that meet every answer of the API, in order, on a log of their own. The answers are the
 * examples of `docs/openapi.yaml`.
 */
import { INGEST_BODY_BYTES_MAX } from "../../../src/limits.ts";
import { failNth } from "../../support/storage_faults.ts";
import { NO_EVENT_ID } from "./api.ts";
import type { TourStop } from "./tour.ts";

/** The ids that the log gives out, from its repeating clock and randomness. */
function eventId(n: number): string {
  return `019b76da-a800-7001-8203-0405060708${(9 + n).toString(16).padStart(2, "0")}`;
}

/** Bodies that are examples too, by name. */
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
      {
        stream: "service.source_lineage",
        record_key: "shop",
        kind: "source_succeeded",
        payload: { v: 1, predecessor_source: "shop", predecessor_final_frontier: eventId(2) },
      },
      { stream: "orders", record_key: "1002", kind: "upserted", payload: { total: 7 } },
    ],
  },
};

const EVENT = { stream: "orders", record_key: "1003", kind: "upserted", payload: {} };
const SMALL_BATCH = { source: "shop", batch_id: "2026-01-31/3", events: [EVENT] };
const MARKER = {
  stream: "service.source_lineage",
  record_key: "shop",
  kind: "source_succeeded",
  payload: { v: 1, predecessor_source: "shop", predecessor_final_frontier: eventId(0) },
};
const RETIRE = "/v1/sources/retire";

export const TOUR: readonly TourStop[] = [
  { example: "empty_page", request: {} },
  { example: null, request: { path: "/v1/streams" } },
  { example: "committed", request: { body: TOUR_BODIES.batch } },
  { example: "duplicate", request: { body: TOUR_BODIES.batch } },
  {
    example: "batch_id_conflict",
    request: { body: { ...SMALL_BATCH, batch_id: "2026-01-31/1" } },
  },
  { example: null, request: { body: TOUR_BODIES.conditional_batch } },
  {
    example: "stream_frontier_conflict",
    request: {
      body: {
        ...SMALL_BATCH,
        stream_precondition: { stream: "orders", expected_frontier: eventId(0) },
      },
    },
  },
  { example: "invalid_request", request: { body: { ...SMALL_BATCH, mode: "replace" } } },
  {
    example: "invalid_request_in_event",
    request: { body: '{"source":"shop","batch_id":"1","events":[{"kind":"a","kind":"b"}]}' },
  },
  { example: "invalid_batch", request: { body: { ...SMALL_BATCH, batch_id: "service/1" } } },
  {
    example: "invalid_events",
    request: { body: { ...SMALL_BATCH, events: [{ ...EVENT, kind: "" }, EVENT, { stream: "A" }] } },
  },
  {
    example: "invalid_source_lineage",
    request: { body: { source: "shop2", batch_id: "1", events: [EVENT, MARKER] } },
  },
  { example: "replay_page", request: { path: "/v1/events?stream=orders&limit=1" } },
  { example: null, request: { path: "/v1/events" } },
  { example: null, request: { path: "/v1/events", method: "HEAD" } },
  { example: null, request: { path: "/v1/events?follow=true", method: "HEAD" } },
  { example: "unknown_parameter", request: { path: "/v1/events?offset=10" } },
  { example: "invalid_replay_request", request: { path: "/v1/events?limit=0" } },
  { example: null, request: { path: "/v1/events?limit=0", method: "HEAD" } },
  {
    example: "internal_error",
    request: { path: "/v1/events?kind=unreadable" },
  },
  { example: null, request: { path: "/v1/events?kind=unreadable", method: "HEAD" } },
  { example: "streams_page", request: { path: "/v1/streams?limit=1" } },
  {
    example: "last_streams_page",
    request: { path: `/v1/streams?after=shop/items&through=${eventId(2)}` },
  },
  { example: null, request: { path: "/v1/streams", method: "HEAD" } },
  { example: "invalid_streams_request", request: { path: "/v1/streams?after=shop/items" } },
  { example: null, request: { path: "/v1/streams?x=1" } },
  {
    example: "stream_anchor_unavailable",
    request: { path: `/v1/streams?through=${NO_EVENT_ID}` },
  },
  { example: null, request: { path: "/v1/streams?source=unreadable" } },
  { example: "retired", request: { path: RETIRE, body: TOUR_BODIES.retirement } },
  { example: "already_retired", request: { path: RETIRE, body: TOUR_BODIES.retirement } },
  { example: "source_not_found", request: { path: RETIRE, body: { source: "crm" } } },
  {
    example: "invalid_source_retirement",
    request: { path: RETIRE, body: { source: "system" } },
  },
  { example: null, request: { path: RETIRE, body: "{" } },
  { example: "source_retired", request: { body: SMALL_BATCH } },
  {
    example: "source_lineage_conflict",
    request: { body: { source: "shop2", batch_id: "1", events: [MARKER] } },
  },
  { example: null, request: { body: TOUR_BODIES.successor_batch } },
  { example: null, request: { path: "/v1/events" } },
  { example: "unauthorized", request: { headers: { authorization: "Bearer guess" } } },
  ...["/v1/events", "/v1/streams", RETIRE].flatMap((path): TourStop[] => [
    { example: null, request: { path, headers: { authorization: "" } } },
    { example: null, request: { path, method: "HEAD", headers: { authorization: "" } } },
    { example: null, request: { path, method: "PUT" } },
  ]),
  { example: null, request: { body: SMALL_BATCH, headers: { authorization: "" } } },
  { example: null, request: { path: RETIRE, body: {}, headers: { authorization: "" } } },
  { example: "not_found", request: { path: "/v1/query" } },
  { example: "method_not_allowed", request: { method: "DELETE" } },
  {
    example: "unsupported_media_type",
    request: { body: "a=b", headers: { "content-type": "application/x-www-form-urlencoded" } },
  },
  {
    example: null,
    request: { path: RETIRE, body: "{}", headers: { "content-encoding": "gzip" } },
  },
  {
    example: "body_too_large",
    request: { body: new Uint8Array(INGEST_BODY_BYTES_MAX + 1) },
  },
  { example: null, request: { path: RETIRE, body: new Uint8Array(INGEST_BODY_BYTES_MAX) } },
  {
    example: "too_many_events",
    request: { body: { ...SMALL_BATCH, events: Array(10_001).fill(EVENT) } },
  },
  {
    example: "overloaded",
    request: { body: SMALL_BATCH },
    before: (tour) => tour.fillRoom(),
  },
  { example: null, request: { path: RETIRE, body: TOUR_BODIES.retirement } },
  { example: null, request: { path: "/v1/events?follow=true&kind=overloaded" } },
  {
    example: "storage_full",
    request: { body: { ...SMALL_BATCH, source: "shop2" } },
    before: (tour) => {
      tour.freeRoom();
      tour.storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
    },
  },
  { example: null, request: { path: RETIRE, body: { source: "shop2" } } },
  {
    example: "writer_poisoned",
    request: { body: { ...SMALL_BATCH, source: "shop2" } },
    before: ({ storage }) => void (storage.hook = failNth("sync", 1, { errno: "EIO" })),
  },
  { example: null, request: { path: RETIRE, body: { source: "shop2" } } },
];
