/** Reads history and listings of streams page by page. */
import type { CommittedEvent, StreamSummary } from "../event/types.ts";
import { verifyEvent } from "../event/verify_event.ts";
import { STREAMS_LIMIT_MAX } from "../limits.ts";
import { AlteredEventError, PositionError, ProtocolError } from "./errors.ts";
import {
  checkPosition,
  frontierOf,
  reachedAfter,
  requestedAfter,
  type StartOptions,
} from "./position.ts";
import { type ApiRequest, refuseUnknown, type Transport } from "./transport.ts";
import { type ReplayPage, toReplayPage, toStreamsPage } from "./wire.ts";

/** An event filter; an absent property matches everything. */
export interface ReplayFilter {
  /** Exact match. */
  source?: string | undefined;
  /** Exact match. */
  stream?: string | undefined;
  /** Exact match. */
  recordKey?: string | undefined;
  /** Exact match. */
  kind?: string | undefined;
}

/** Options for `replay()`. */
export interface ReplayOptions extends ReplayFilter, StartOptions {
  /** Maximum number of events per page; the service's default if absent. */
  limit?: number;
  /** Checks the hashes of each event and throws an `AlteredEventError`; default false. */
  verify?: boolean;
  /**
   * Called with each new position, for a consumer to persist as the `after` of its next run. Called
   * once the events before it have been consumed, that is when the item after them is requested,
   * and repeatedly while no event matches. The iteration waits for a returned promise.
   */
  onPosition?: (position: string) => void | Promise<void>;
  /** Cancels the iteration, which then throws the signal's abort reason. */
  signal?: AbortSignal | undefined;
}

export const REPLAY_OPTIONS =
  "after afterHash since source stream recordKey kind limit verify onPosition signal";

/** A service cannot be stopped and started with another log between two pages in this time. */
const TRUSTED_MS = 50;

/** Builds the request for events after a position. */
export function eventsRequest(options: ReplayOptions, after: string | null): ApiRequest {
  const { source, stream, recordKey: record_key, kind, limit } = options;
  const filter = { source, stream, record_key, kind };
  const query = { after: requestedAfter(after, options), ...filter, limit };
  return { method: "GET", path: "/v1/events", query };
}

/** Checks that the requested position is within the log and, on request, each event's hashes. */
export async function checkPage(
  { events, snapshotThroughEventId: through }: ReplayPage,
  after: string | null,
  { verify = false }: ReplayOptions,
): Promise<void> {
  if (after !== null && (through === null || after > through)) {
    throw new PositionError(after, through);
  }
  if (!verify) return;
  // An event without a canonical form cannot have been committed.
  const isUnaltered = (event: CommittedEvent) =>
    verifyEvent(event).then((match) => match.contentHash && match.eventHash, () => false);
  const results = await Promise.all(events.map(isUnaltered));
  const altered = events.find((_, index) => !results[index]);
  if (altered !== undefined) throw new AlteredEventError(altered);
}

/** Yields the pages up to the end of the first page's snapshot, however fast the log grows. */
export async function* replayPages<Payload>(
  transport: Transport,
  options: ReplayOptions,
): AsyncGenerator<ReplayPage<Payload>, void> {
  refuseUnknown("replay()", options, REPLAY_OPTIONS);
  const read = (request: ApiRequest) => transport.request(request, options.signal);
  let after = options.after === "now" ? await frontierOf(read) : options.after ?? null;
  let through: string | null | undefined;
  let trustedUntilMs = -Infinity;
  for (;;) {
    const page = toReplayPage<Payload>(await read(eventsRequest(options, after)));
    page.nextAfter = reachedAfter(page.nextAfter, options);
    await checkPage(page, after, options);
    // A check that follows the response applies to the log that it came from.
    const isDue = transport.timing.nowMs() > trustedUntilMs;
    if (after !== null && isDue) await checkPosition(read, after, options);
    trustedUntilMs = transport.timing.nowMs() + TRUSTED_MS;
    through ??= page.snapshotThroughEventId;
    yield { ...cutPage(page, through), snapshotThroughEventId: through };
    const { nextAfter } = page;
    if (nextAfter === null || through === null || nextAfter >= through) return;
    if (after !== null && nextAfter <= after) {
      throw new ProtocolError("next_after of a page is not beyond the requested position");
    }
    after = nextAfter;
  }
}

/** Yields pages or records, and calls `onPosition` after each one that advances the position. */
export async function* reportPositions<Item extends { nextAfter: string | null }>(
  items: AsyncGenerator<Item, void>,
  options: ReplayOptions,
): AsyncGenerator<Item, void> {
  let position: string | null | undefined;
  for await (const item of items) {
    const { after, onPosition, signal } = options;
    if (position === undefined) position = after ?? null;
    yield item;
    signal?.throwIfAborted();
    if (item.nextAfter === null || item.nextAfter === position) continue;
    position = item.nextAfter;
    await onPosition?.(position);
  }
}

/** Drops events that were committed after the snapshot. */
function cutPage<Payload>(page: ReplayPage<Payload>, through: string | null): ReplayPage<Payload> {
  const last = page.events.at(-1);
  if (last === undefined || through === null || last.event_id <= through) return page;
  const events = page.events.filter((event) => event.event_id <= through);
  return { ...page, events, nextAfter: through };
}

/** Options for `streams()`. */
export interface StreamsOptions {
  /** Restricts the listing to one source. */
  source?: string | undefined;
  /** Cancels the call, which then throws the signal's abort reason. */
  signal?: AbortSignal | undefined;
}

/** All streams in a snapshot. */
export interface StreamsSnapshot {
  /** Streams in byte order of source, then stream. */
  streams: StreamSummary[];
  /** The last counted event; null for an empty log. */
  snapshotThroughEventId: string | null;
}

/** Yields pages of streams, which count events up to the same event and so form one snapshot. */
export async function* streamsPages(
  transport: Transport,
  options: StreamsOptions,
): AsyncGenerator<StreamsSnapshot, void> {
  refuseUnknown("streams()", options, "source signal");
  const { source, signal } = options;
  let after: string | undefined;
  let through: string | undefined;
  for (;;) {
    const query = { source, after, through, limit: STREAMS_LIMIT_MAX };
    const request = { method: "GET", path: "/v1/streams", query } as const;
    const page = toStreamsPage(await transport.request(request, signal));
    through ??= page.snapshotThroughEventId ?? undefined;
    yield { streams: page.streams, snapshotThroughEventId: through ?? null };
    if (page.nextAfter === null) return;
    if (page.nextAfter === after) {
      throw new ProtocolError("next_after of a page of streams does not advance");
    }
    after = page.nextAfter;
  }
}
