/**
 * What the service sends, checked as far as this client relies on it, with the client's own names.
 * Unknown members are ignored.
 */
import { parseJsonText } from "../event/json/strict_json.ts";
import type { CommittedEvent, FollowEndReason, StreamSummary } from "../event/types.ts";
import { ProtocolError } from "./errors.ts";

/** One page of history. */
export interface ReplayPage {
  /** In the order of the log; may be empty, also before the last page. */
  events: CommittedEvent[];
  /** Where the next page starts. Persist it; null only for an empty log read from its beginning. */
  nextAfter: string | null;
  /** Last event of the log at the moment that is replayed; null for an empty log. */
  snapshotThroughEventId: string | null;
}

/** Events as they are followed. */
export interface FollowEvents extends ReplayPage {
  /** Tells it from the other records. */
  type: "events";
  /** `snapshot`: committed before this connection was made. `live`: since. */
  phase: "snapshot" | "live";
}

/** All that was committed before this connection was made has been delivered. */
export interface FollowCaughtUp {
  /** Tells it from the other records. */
  type: "caught_up";
  /** Where a later follow or replay resumes. */
  nextAfter: string | null;
  /** Last event of the log when the connection was made; null for an empty log. */
  snapshotThroughEventId: string | null;
}

/** The service ended the response, and says why. */
export interface FollowEnd {
  /** Tells it from the other records. */
  type: "end";
  /** Reasons this client does not know are kept. */
  reason: FollowEndReason | (string & Record<never, never>);
  /** More on the reason, for people. */
  detail?: string;
  /** Where a later follow or replay resumes; null for the beginning. */
  nextAfter: string | null;
}

/** What a follow delivers, record by record. */
export type FollowRecord = FollowEvents | FollowCaughtUp | FollowEnd;

/** One line of a follow response. After an `end`, its reader knows where to resume. */
export type FollowLine = FollowEvents | FollowCaughtUp | Omit<FollowEnd, "nextAfter">;

/** One page of streams. */
export interface StreamsPage {
  streams: StreamSummary[];
  nextAfter: string | null;
  snapshotThroughEventId: string | null;
}

/** @throws {ProtocolError} when a member is missing. */
export function toReplayPage(value: unknown): ReplayPage {
  const page = toMembers(value);
  return { events: itemsOf<CommittedEvent>(page, "events"), ...positionOf(page) };
}

/** @throws {ProtocolError} when a member is missing. */
export function toStreamsPage(value: unknown): StreamsPage {
  const page = toMembers(value);
  return { streams: itemsOf<StreamSummary>(page, "streams"), ...positionOf(page) };
}

/**
 * The record of a line; null for a kind of record this client does not know.
 * @throws {ProtocolError} when the line is not JSON in UTF-8, or a member is missing.
 */
export function toFollowLine(line: Uint8Array): FollowLine | null {
  const record = toMembers(parseLine(line));
  switch (record.type) {
    case "events": {
      const phase = record.phase === "live" ? "live" : "snapshot";
      return { type: "events", phase, ...toReplayPage(record) };
    }
    case "caught_up":
      return { type: "caught_up", ...positionOf(record) };
    case "end": {
      const detail = typeof record.detail === "string" ? { detail: record.detail } : {};
      return { type: "end", reason: String(record.reason), ...detail };
    }
    default:
      return null;
  }
}

/**
 * An answer that has at least these members, all of them strings.
 * @throws {ProtocolError} when one is missing.
 */
export function toReceipt<T>(value: unknown, names: readonly (keyof T & string)[]): T {
  const receipt = toMembers(value);
  const missing = names.find((name) => typeof receipt[name] !== "string");
  if (missing !== undefined) throw new ProtocolError(`answer has no ${missing}`);
  return value as T;
}

type Members = Record<string, unknown>;

function toMembers(value: unknown): Members {
  if (typeof value === "object" && value !== null) return value as Members;
  throw new ProtocolError("answer is not a JSON object");
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function parseLine(line: Uint8Array): unknown {
  try {
    return parseJsonText(UTF8.decode(line));
  } catch (cause) {
    throw new ProtocolError("a line of the answer is not JSON in UTF-8", { cause });
  }
}

function itemsOf<T>(page: Members, name: string): T[] {
  const items = page[name];
  if (Array.isArray(items)) return items;
  throw new ProtocolError(`answer has no array ${name}`);
}

function positionOf(
  page: Members,
): { nextAfter: string | null; snapshotThroughEventId: string | null } {
  return {
    nextAfter: textOrNull(page, "next_after"),
    snapshotThroughEventId: textOrNull(page, "snapshot_through_event_id"),
  };
}

function textOrNull(page: Members, name: string): string | null {
  const value = page[name];
  if (typeof value === "string" || value === null) return value;
  throw new ProtocolError(`answer has no ${name}`);
}
