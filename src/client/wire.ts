/** Checks parsed responses. A `ProtocolError` reports a missing member that the client uses. */
import type { CommittedEvent, FollowEndReason, StreamSummary } from "../event/types.ts";
import { ProtocolError } from "./errors.ts";

/** A replay page. */
export interface ReplayPage<Payload = unknown> {
  /** Events in log order; any page may be empty. */
  events: CommittedEvent<Payload>[];
  /** Position to persist for the next page; null only for an empty log read from its beginning. */
  nextAfter: string | null;
  /** Last event in the snapshot; null for an empty log. */
  snapshotThroughEventId: string | null;
}

/** A record with followed events. */
export interface FollowEvents<Payload = unknown> extends ReplayPage<Payload> {
  /** Record type. */
  type: "events";
  /** `snapshot`: committed before this connection was made. `live`: committed afterwards. */
  phase: "snapshot" | "live";
}

/** All events committed before this connection was made have been delivered. */
export interface FollowCaughtUp extends Omit<ReplayPage, "events"> {
  /** Record type. */
  type: "caught_up";
}

/** The service ended the response. */
export interface FollowEnd {
  /** Record type. */
  type: "end";
  /** Why the service ended the response; may be unknown to this client. */
  reason: FollowEndReason | (string & Record<never, never>);
  /** Human-readable details. */
  detail?: string;
  /** Position for a later follow or replay; null for the beginning. */
  nextAfter: string | null;
}

/** A record in a follow response. */
export type FollowRecord<Payload = unknown> = FollowEvents<Payload> | FollowCaughtUp | FollowEnd;

type Position = Omit<ReplayPage, "events">;

interface StreamsPage extends Position {
  streams: StreamSummary[];
}

export function toReplayPage<Payload>(value: unknown): ReplayPage<Payload> {
  const page = toMembers(value);
  return { events: itemsOf<CommittedEvent<Payload>>(page, "events"), ...positionOf(page) };
}

export function toStreamsPage(value: unknown): StreamsPage {
  const page = toMembers(value);
  return { streams: itemsOf<StreamSummary>(page, "streams"), ...positionOf(page) };
}

/**
 * Checks a record of a follow response; null for an unknown record type.
 * @param at the follower's position, which an `end` gets.
 */
export function toFollowRecord<Payload>(
  value: unknown,
  at: string | null,
): FollowRecord<Payload> | null {
  const record = toMembers(value);
  switch (record.type) {
    case "events": {
      const phase = record.phase === "live" ? "live" : "snapshot";
      return { type: "events", phase, ...toReplayPage<Payload>(record) };
    }
    case "caught_up":
      return { type: "caught_up", ...positionOf(record) };
    case "end": {
      const detail = typeof record.detail === "string" ? { detail: record.detail } : {};
      return { type: "end", reason: String(record.reason), ...detail, nextAfter: at };
    }
    default:
      return null;
  }
}

/** Checks that a receipt has these members, all strings. */
export function toReceipt<T>(value: unknown, names: readonly (keyof T & string)[]): T {
  const receipt = toMembers(value);
  const missing = names.find((name) => typeof receipt[name] !== "string");
  if (missing !== undefined) throw new ProtocolError(`response has no ${missing}`);
  return value as T;
}

type Members = Record<string, unknown>;

function toMembers(value: unknown): Members {
  if (typeof value === "object" && value !== null) return value as Members;
  throw new ProtocolError("response is not a JSON object");
}

function itemsOf<T>(page: Members, name: string): T[] {
  const items = page[name];
  if (Array.isArray(items)) return items as T[];
  throw new ProtocolError(`response has no ${name} array`);
}

function positionOf(page: Members): Position {
  return {
    nextAfter: textOrNull(page, "next_after"),
    snapshotThroughEventId: textOrNull(page, "snapshot_through_event_id"),
  };
}

function textOrNull(page: Members, name: string): string | null {
  const value = page[name];
  if (typeof value === "string" || value === null) return value;
  throw new ProtocolError(`response has no ${name}`);
}
