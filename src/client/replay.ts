/**
 * Reading history to its end, page by page. The pages of one replay are the log as it was when the
 * first was read: what is committed meanwhile is left to the next replay, so that one ends however
 * fast the log grows.
 */
import type { CommittedEvent } from "../event/types.ts";
import { ProtocolError } from "./errors.ts";
import type { ApiRequest } from "./transport.ts";
import { type ReplayPage, toReplayPage } from "./wire.ts";

/** Which events; an absent member matches all. */
export interface ReplayFilter {
  /** Exact match. */
  source?: string;
  /** Exact match. */
  stream?: string;
  /** Exact match. */
  recordKey?: string;
  /** Exact match. */
  kind?: string;
}

/** What to replay. */
export interface ReplayOptions extends ReplayFilter {
  /** Event id, exclusive: the last `nextAfter`. Null or absent: from the beginning. */
  after?: string | null;
  /** Maximum events of a page; the service's default when absent. */
  limit?: number;
  /** Ends the iteration: it throws the signal's reason. */
  signal?: AbortSignal;
}

/** Sends a read and returns the JSON of its answer. */
export type Get = (request: ApiRequest, signal: AbortSignal | undefined) => Promise<unknown>;

/** The request for events after a position. */
export function eventsRequest(options: ReplayOptions, after: string | null): ApiRequest {
  const { source, stream, recordKey, kind, limit } = options;
  return {
    method: "GET",
    path: "/v1/events",
    query: { after: after ?? undefined, source, stream, record_key: recordKey, kind, limit },
  };
}

/**
 * The pages from `after` to the end of the log as it is when the first is read.
 * @throws {ProtocolError} the service does not advance.
 */
export async function* replayPages(get: Get, options: ReplayOptions): AsyncGenerator<ReplayPage> {
  let after = options.after ?? null;
  let through: string | null | undefined;
  for (;;) {
    const page = toReplayPage(await get(eventsRequest(options, after), options.signal));
    through ??= page.snapshotThroughEventId;
    yield { ...cutPage(page, through), snapshotThroughEventId: through };
    const { nextAfter } = page;
    if (nextAfter === null || through === null || nextAfter >= through) return;
    if (after !== null && nextAfter <= after) throw new ProtocolError("a page does not advance");
    after = nextAfter;
  }
}

/** Leaves out what was committed after the first page was read. */
function cutPage(page: ReplayPage, through: string | null): ReplayPage {
  const last = page.events.at(-1);
  if (last === undefined || through === null || last.event_id <= through) return page;
  const events = page.events.filter((event) => event.event_id <= through);
  return { ...page, events, nextAfter: through };
}

/** The events of pages, one by one. */
export async function* eventsOf(pages: AsyncIterable<ReplayPage>): AsyncGenerator<CommittedEvent> {
  for await (const page of pages) yield* page.events;
}
