/** What the clients of a measured row send, and what they insist on getting. */
import type { Buffer } from "node:buffer";
import type { Workload } from "./load.ts";
import { BatchRequest, pageRequest } from "./requests.ts";
import type { RawResponse } from "./response_parser.ts";

const COMMITTED = '"status":"committed"';

/** Appends batches of `events` events, each under a new id: only `committed` is a right answer. */
export function ingestWorkload(idPrefix: string, events: number): Workload {
  const request = new BatchRequest(idPrefix, events);
  return {
    next: () => request.next(),
    accept(response) {
      requireCommitted(response);
      return events;
    },
    bytes: (sent) => sent.length,
  };
}

/** What a replay must find. */
export interface ReplayedLog {
  /** Events in the log. */
  events: number;
  /** Events of a full page. */
  pageEvents: number;
}

/** Reads the whole log page by page, over and over. */
export function replayWorkload({ events, pageEvents }: ReplayedLog): Workload {
  let after: string | null = null;
  let readEvents = 0;
  return {
    next: () => pageRequest(after, pageEvents),
    accept(response) {
      requireOk(response);
      const { nextAfter, snapshotThrough } = pagePosition(response.bodyEnd);
      const isLast = nextAfter === snapshotThrough;
      // Only the last page is shorter; how much of the log is left says by how much.
      const pageCount = isLast ? events - readEvents : pageEvents;
      if (pageCount <= 0 || pageCount > pageEvents) {
        throw new Error(`replay of ${events} events ended after ${readEvents}`);
      }
      after = isLast ? null : nextAfter;
      readEvents = isLast ? 0 : readEvents + pageCount;
      return pageCount;
    },
    bytes: (_, response) => response.bodyBytes,
  };
}

/** Reads one and the same full page, over and over. */
export function pageWorkload(after: string | null, pageEvents: number): Workload {
  const request: Buffer = pageRequest(after, pageEvents);
  return {
    next: () => request,
    accept(response) {
      requireOk(response);
      return pageEvents;
    },
    bytes: (_, response) => response.bodyBytes,
  };
}

interface PagePosition {
  nextAfter: string;
  snapshotThrough: string;
}

/** Reads the members that follow the events of a replay page. */
export function pagePosition(bodyEnd: Buffer): PagePosition {
  const pattern = /"next_after":"([0-9a-f-]+)","snapshot_through_event_id":"([0-9a-f-]+)"\}\s*$/;
  const [, nextAfter, snapshotThrough] = pattern.exec(bodyEnd.toString("utf8")) ?? [];
  if (nextAfter === undefined || snapshotThrough === undefined) {
    throw new Error(`no replay page: ...${bodyEnd}`);
  }
  return { nextAfter, snapshotThrough };
}

/** @throws {Error} The batch was refused, or had been committed before. */
export function requireCommitted(response: RawResponse): void {
  requireOk(response);
  if (!response.bodyEnd.includes(COMMITTED)) {
    throw new Error(`batch was not committed: ${response.bodyEnd}`);
  }
}

/** @throws {Error} The status is another one than 200. */
export function requireOk(response: RawResponse): void {
  if (response.status !== 200) throw new Error(`status ${response.status}: ${response.bodyEnd}`);
}
