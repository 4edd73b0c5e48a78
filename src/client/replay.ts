/**
 * Reads history page by page. All pages belong to the snapshot of the first page, so a replay ends
 * no matter how fast the log grows.
 */
import type { CommittedEvent } from "../event/types.ts";
import { verifyEvent } from "../event/verify_event.ts";
import { AlteredEventError, PositionError, ProtocolError } from "./errors.ts";
import { refuseUnknown } from "./options.ts";
import { checkPosition, reachedAfter, requestedAfter, type StartOptions } from "./position.ts";
import type { ApiRequest, Transport } from "./transport.ts";
import { type ReplayPage, toReplayPage } from "./wire.ts";

/** An event filter; an absent property matches everything. */
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
  signal?: AbortSignal;
}

export const REPLAY_OPTIONS =
  "after afterHash since source stream recordKey kind limit verify onPosition signal";

/** A service cannot be stopped and started with another log between two pages in this time. */
const TRUSTED_MS = 50;

/** Builds the request for events after a position. */
export function eventsRequest(options: ReplayOptions, after: string | null): ApiRequest {
  const { source, stream, recordKey, kind, limit } = options;
  return {
    method: "GET",
    path: "/v1/events",
    query: {
      after: requestedAfter(after, options),
      source,
      stream,
      record_key: recordKey,
      kind,
      limit,
    },
  };
}

/**
 * Checks that the position is within the log and, if requested, each event's hashes.
 * @param after The position that was requested.
 * @throws {PositionError} if the position is beyond the log.
 * @throws {AlteredEventError} if an event does not match its hashes.
 */
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

/**
 * Yields the pages from `after` to the end of the first page's snapshot.
 * @throws {ProtocolError} if a page does not advance.
 */
export async function* replayPages<Payload>(
  transport: Transport,
  options: ReplayOptions,
): AsyncGenerator<ReplayPage<Payload>> {
  refuseUnknown("replay()", options, REPLAY_OPTIONS);
  let after = options.after ?? null;
  let through: string | null | undefined;
  const read = (request: ApiRequest) => transport.request(request, options.signal);
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
  { after, onPosition }: ReplayOptions,
): AsyncGenerator<Item, void> {
  let position = after ?? null;
  for await (const item of items) {
    yield item;
    if (item.nextAfter === null || item.nextAfter === position) continue;
    position = item.nextAfter;
    await onPosition?.(position);
  }
}

/** Drops events that were committed after the snapshot. */
function cutPage<Payload>(
  page: ReplayPage<Payload>,
  through: string | null,
): ReplayPage<Payload> {
  const last = page.events.at(-1);
  if (last === undefined || through === null || last.event_id <= through) return page;
  const events = page.events.filter((event) => event.event_id <= through);
  return { ...page, events, nextAfter: through };
}
