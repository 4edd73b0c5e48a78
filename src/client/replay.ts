/**
 * Reads history page by page. All pages belong to the snapshot of the first page, so a replay ends
 * no matter how fast the log grows.
 */
import { ProtocolError } from "./errors.ts";
import type { ApiRequest, Transport } from "./transport.ts";
import { type ReplayPage, toReplayPage } from "./wire.ts";

/** An event filter; an absent member matches everything. */
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

/** Options of a replay. */
export interface ReplayOptions extends ReplayFilter {
  /** Event id to start after: the last `nextAfter`. Null or absent: from the beginning. */
  after?: string | null;
  /** Maximum number of events per page; the service's default if absent. */
  limit?: number;
  /** Cancels the iteration, which throws the signal's abort reason. */
  signal?: AbortSignal;
}

/** Builds the request for events after a position. */
export function eventsRequest(options: ReplayOptions, after: string | null): ApiRequest {
  const { source, stream, recordKey, kind, limit } = options;
  return {
    method: "GET",
    path: "/v1/events",
    query: { after: after ?? undefined, source, stream, record_key: recordKey, kind, limit },
  };
}

/**
 * Yields the pages from `after` to the end of the first page's snapshot.
 * @throws {ProtocolError} a page does not advance.
 */
export async function* replayPages(
  transport: Transport,
  options: ReplayOptions,
): AsyncGenerator<ReplayPage> {
  let after = options.after ?? null;
  let through: string | null | undefined;
  for (;;) {
    const request = eventsRequest(options, after);
    const page = toReplayPage(await transport.request(request, options.signal));
    through ??= page.snapshotThroughEventId;
    yield { ...cutPage(page, through), snapshotThroughEventId: through };
    const { nextAfter } = page;
    if (nextAfter === null || through === null || nextAfter >= through) return;
    if (after !== null && nextAfter <= after) throw new ProtocolError("a page does not advance");
    after = nextAfter;
  }
}

/** Drops events that were committed after the snapshot. */
function cutPage(page: ReplayPage, through: string | null): ReplayPage {
  const last = page.events.at(-1);
  if (last === undefined || through === null || last.event_id <= through) return page;
  const events = page.events.filter((event) => event.event_id <= through);
  return { ...page, events, nextAfter: through };
}
