/** The requests from a row's clients, and checks of their responses. */
import type { Buffer } from "node:buffer";
import type { Workload } from "./load.ts";
import {
  BatchRequest,
  customerEvent,
  getRequest,
  ID_CHARS,
  keyRequest,
  PAGE_EVENTS,
  pageRequest,
  postRequest,
  typicalEvents,
  typicalPayload,
} from "./requests.ts";
import type { RawResponse } from "./response_parser.ts";

const COMMITTED = '"status":"committed"';

/** A load of clients that each append one batch after another. */
export interface IngestLoad {
  /** Its name in tables and charts. */
  label: string;
  clients: number;
  batchEvents: number;
}

/** The loads of the comparisons, by the names of their rows. */
export const INGEST_LOADS: Record<string, IngestLoad> = {
  "single-1": { label: "batches of 1, 1 client", clients: 1, batchEvents: 1 },
  "single-16": { label: "batches of 1, 16 clients", clients: 16, batchEvents: 1 },
  "single-64": { label: "batches of 1, 64 clients", clients: 64, batchEvents: 1 },
  "batch-100-16": { label: "batches of 100, 16 clients", clients: 16, batchEvents: 100 },
  "batch-1000-1": { label: "batches of 1,000, 1 client", clients: 1, batchEvents: 1000 },
  "batch-1000-4": { label: "batches of 1,000, 4 clients", clients: 4, batchEvents: 1000 },
};

/** Returns one workload per client. */
export function ingestWorkloads({ clients, batchEvents }: Omit<IngestLoad, "label">): Workload[] {
  const ids = Array.from({ length: clients }, (_, client) => `client-${client}`);
  return ids.map((id) => ingestWorkload(id, batchEvents));
}

/** Appends batches of `events` events with new ids. Only the status `committed` is correct. */
export function ingestWorkload(
  idPrefix: string,
  events: number,
  record_key?: string,
): Workload {
  const typical = typicalEvents(events);
  const keyed = record_key === undefined
    ? typical
    : typical.map((event) => ({ ...event, record_key }));
  const request = new BatchRequest({ idPrefix, events: keyed });
  return appending(() => request.next(), events);
}

/** Appends new batches of `events` events. */
export function appending(next: () => Buffer, events: number): Workload {
  return requesting(next, events, requireCommitted);
}

/** Sends requests whose responses pass a check and count as `events` events. */
export function requesting(next: () => Buffer, events: number, check = requireOk): Workload {
  return {
    next,
    accept(response) {
      check(response);
      return events;
    },
  };
}

/** Appends to one stream. */
export interface StreamEvents {
  source: string;
  stream: string;
  /** Default: a typical one. */
  payload?: unknown;
}

/** Appends single events to a stream of its own, without a precondition. */
export function streamWorkload({ source, stream, payload }: StreamEvents): Workload {
  const events = [customerEvent(stream, 1, payload ?? typicalPayload(1))];
  const request = new BatchRequest({ idPrefix: stream, source, events });
  return appending(() => request.next(), 1);
}

const LAST_EVENT_ID = '"last_event_id":"';

/** Like `streamWorkload()`, and each event expects the frontier that the one before it left. */
export function conditionalWorkload({ source, stream }: StreamEvents): Workload {
  const events = [customerEvent(stream, 1, typicalPayload(1))];
  const stream_precondition = { stream, expected_frontier: null };
  const first = postRequest({ batch_id: stream, source, stream_precondition, events });
  const request = new BatchRequest({ idPrefix: stream, source, events, guarded: stream });
  let frontier: string | undefined;
  return {
    next: () => frontier === undefined ? first : request.next(frontier),
    accept(response) {
      requireCommitted(response);
      const { bodyEnd } = response;
      const start = bodyEnd.indexOf(LAST_EVENT_ID) + LAST_EVENT_ID.length;
      frontier = bodyEnd.toString("latin1", start, start + ID_CHARS);
      return 1;
    },
  };
}

/** Reads a log of `events` events page by page, repeatedly. */
export function replayWorkload(events: number): Workload {
  let after: string | null = null;
  let readEvents = 0;
  return {
    next: () => pageRequest(after),
    accept(response) {
      requireOk(response);
      const { nextAfter, snapshotThrough } = pagePosition(response.bodyEnd);
      const isLast = nextAfter === snapshotThrough;
      // Only the last page may be shorter.
      const pageCount = isLast ? events - readEvents : PAGE_EVENTS;
      if (pageCount <= 0 || pageCount > PAGE_EVENTS) {
        throw new Error(`replay of ${events} events ended after ${readEvents}`);
      }
      after = isLast ? null : nextAfter;
      readEvents = isLast ? 0 : readEvents + pageCount;
      return pageCount;
    },
  };
}

/** Step between lookups. It is coprime to most counts, so consecutive ones are not neighbors. */
export const KEY_STEP = 7919;

/** Looks up one of `keys` keys after another, each in a different part of the log. */
export function keyWorkload(keys: number): Workload {
  let number = 0;
  return {
    next: () => keyRequest(number++ * KEY_STEP % keys),
    accept(response) {
      requireOk(response);
      if (!response.bodyEnd.includes(LAST_EVENT_ID)) {
        throw new Error(`key not found: ${response.bodyEnd}`);
      }
      return 1;
    },
  };
}

const ZIPF_STREAMS = 10_000;
const ZIPF_READ_SHARE = 0.7;

/** Mixes appends to and pages of 10,000 streams; the n-th is picked 1/n as often as the first. */
export function zipfWorkload({ source, stream: idPrefix }: StreamEvents): Workload {
  let number = 0;
  let isRead = false;
  return {
    next() {
      const stream = `zipf-${Math.floor(ZIPF_STREAMS ** Math.random())}`;
      isRead = Math.random() < ZIPF_READ_SHARE;
      return isRead ? getRequest(`/v1/events?source=${source}&stream=${stream}`) : postRequest({
        batch_id: `${idPrefix}-${number++}`,
        source,
        events: [customerEvent(stream, 1, typicalPayload(1))],
      });
    },
    accept(response) {
      if (isRead) requireOk(response);
      else requireCommitted(response);
      return 1;
    },
  };
}

interface PagePosition {
  nextAfter: string;
  snapshotThrough: string;
}

/** Parses the members that follow the events in a replay page. */
export function pagePosition(bodyEnd: Buffer): PagePosition {
  const pattern = /"next_after":"([0-9a-f-]+)","snapshot_through_event_id":"([0-9a-f-]+)"\}\s*$/;
  const [, nextAfter, snapshotThrough] = pattern.exec(bodyEnd.toString("utf8")) ?? [];
  if (nextAfter === undefined || snapshotThrough === undefined) {
    throw new Error(`not a replay page: ...${bodyEnd}`);
  }
  return { nextAfter, snapshotThrough };
}

/** @throws {Error} if the batch was rejected, or is a duplicate. */
function requireCommitted(response: RawResponse): void {
  requireOk(response);
  if (!response.bodyEnd.includes(COMMITTED)) {
    throw new Error(`batch was not committed: ${response.bodyEnd}`);
  }
}

/** @throws {Error} if the status is not 200. */
function requireOk(response: RawResponse): void {
  if (response.status !== 200) throw new Error(`status ${response.status}: ${response.bodyEnd}`);
}
