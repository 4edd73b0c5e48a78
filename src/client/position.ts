/**
 * Positions in the log: where a read starts, and how far a consumer is. A position names an event,
 * which the log must contain. After a restore from an older backup, the log may not contain that
 * event, although it contains later ones.
 */
import { firstIdAt, idBefore } from "../event/event_id.ts";
import { PositionError } from "./errors.ts";
import type { ApiRequest } from "./transport.ts";
import { toReplayPage } from "./wire.ts";

/** Where a read starts. */
export interface StartOptions {
  /**
   * Id of the event to start after, usually the last `nextAfter`. The log must contain it. If null
   * or absent, `since` applies. `now` starts after the last event in the log.
   */
  after?: string | "now" | null | undefined;
  /** `event_hash` of the event that `after` names, which the event in the log must have. */
  afterHash?: string;
  /** Commit time to start at, in Unix milliseconds or as a Date; absent for the whole log. */
  since?: Date | number | undefined;
}

/** Sends a request and returns the JSON document in the response. */
export type Read = (request: ApiRequest) => Promise<unknown>;

/** Reads an event by its id; null if it is not in the log. */
export async function lookUp<Payload>(read: Read, eventId: string) {
  const query = { after: idBefore(eventId), limit: 1 };
  const page = toReplayPage<Payload>(await read({ method: "GET", path: "/v1/events", query }));
  const event = page.events.find(({ event_id }) => event_id === eventId) ?? null;
  return { event, frontier: page.snapshotThroughEventId };
}

/** Returns the id of the last event in the log. */
export async function frontierOf(read: Read): Promise<string | null> {
  return (await lookUp(read, firstIdAt(Infinity))).frontier;
}

/** @throws {PositionError} if the log does not contain the event at this position. */
export async function checkPosition(read: Read, at: string, options: StartOptions): Promise<void> {
  const { after, afterHash } = options;
  const { event, frontier } = await lookUp(read, at);
  const isSame = at !== after || afterHash === undefined || event?.event_hash === afterHash;
  if (event === null || !isSame) throw new PositionError(at, frontier);
}

/** Returns the position to request: that of the last event or, before the first, of `since`. */
export function requestedAfter(nextAfter: string | null, { since }: StartOptions) {
  return nextAfter ?? (since === undefined ? undefined : firstIdAt(Number(since)));
}

/** Returns null for a position that is no event, which the log has not reached. */
export function reachedAfter(nextAfter: string | null, options: StartOptions): string | null {
  return nextAfter === requestedAfter(null, options) ? null : nextAfter;
}
