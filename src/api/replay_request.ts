/** From the query string of `GET /v1/events` to a replay or a follow. */
import { ApiError } from "../event/api_error.ts";
import { isEventId } from "../event/event_id.ts";
import { recordKeyFault } from "../event/names.ts";
import type { EventFilter } from "../log/line/stored_line.ts";
import type { ReplayQuery } from "../service/event_log.ts";
import { type Parameters, parseQuery } from "./query_string.ts";

export interface ReplayLimits {
  /** Events of a page when the request names no `limit`. */
  defaultLimit: number;
  /** The largest `limit`. */
  maxLimit: number;
}

const REPLAY_PARAMETERS: ReadonlySet<string> = new Set([
  "after",
  "source",
  "stream",
  "record_key",
  "kind",
  "limit",
  "follow",
]);

export interface ReplayRequest {
  query: ReplayQuery;
  /** Whether the response goes on with what is committed from now on. */
  follow: boolean;
}

/**
 * Reads a query string (without its question mark).
 * @throws {ApiError} `invalid_request` for the query string, `invalid_replay_request` for a value.
 */
export function readReplayRequest(query: string, limits: ReplayLimits): ReplayRequest {
  const parameters = parseQuery(query, REPLAY_PARAMETERS);
  return {
    query: {
      after: readAfter(parameters.get("after")),
      filter: readFilter(parameters),
      limitEvents: readLimit(parameters.get("limit"), limits),
    },
    follow: readFollow(parameters.get("follow")),
  };
}

function readFollow(follow: string | undefined): boolean {
  if (follow === undefined || follow === "false") return false;
  if (follow === "true") return true;
  throw replayError("follow must be true or false");
}

function readAfter(after: string | undefined): string | undefined {
  if (after === undefined || isEventId(after)) return after;
  throw replayError("after must be an event id: a UUIDv7 in lowercase with hyphens");
}

function readLimit(text: string | undefined, { defaultLimit, maxLimit }: ReplayLimits): number {
  if (text === undefined) return defaultLimit;
  const limitEvents = /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
  if (limitEvents <= maxLimit) return limitEvents;
  throw replayError(`limit must be an integer from 1 to ${maxLimit}`);
}

/** Names and kinds are plain strings: one that no event can have matches nothing. */
function readFilter(parameters: Parameters): EventFilter {
  const filter: EventFilter = {};
  for (const name of ["source", "stream", "kind"] as const) {
    const value = parameters.get(name);
    if (value !== undefined) filter[name] = value;
  }
  const recordKey = parameters.get("record_key");
  if (recordKey === undefined) return filter;
  const fault = recordKeyFault(recordKey);
  if (fault !== null) throw replayError(`record_key ${fault}`);
  return { ...filter, recordKey };
}

function replayError(message: string): ApiError {
  return new ApiError("invalid_replay_request", message);
}
