/** Parses the query string of `GET /v1/events`. */
import { ApiError } from "../event/api_error.ts";
import { recordKeyFault } from "../event/names.ts";
import type { EventFilter } from "../log/line/stored_line.ts";
import type { ReplayQuery } from "../log/read/event_scan.ts";
import {
  type PageLimits,
  type Parameters,
  parseQuery,
  readEventId,
  readLimit,
} from "./query_string.ts";

const CODE = "invalid_replay_request";
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
  /** Whether the response continues with new events. */
  follow: boolean;
}

/**
 * Parses a query string (without its question mark).
 * @throws {ApiError} `invalid_request` for the query string, `invalid_replay_request` for a value.
 */
export function readReplayRequest(query: string, limits: PageLimits): ReplayRequest {
  const parameters = parseQuery(query, REPLAY_PARAMETERS);
  return {
    query: {
      after: readEventId(parameters, "after", CODE),
      filter: readFilter(parameters),
      limitEvents: readLimit(parameters, limits, CODE),
    },
    follow: readFollow(parameters.get("follow")),
  };
}

function readFollow(follow: string | undefined): boolean {
  if (follow === undefined || follow === "false") return false;
  if (follow === "true") return true;
  throw replayError("follow must be true or false");
}

/** Does not validate names and kinds: an invalid one matches nothing. */
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
  return new ApiError(CODE, message);
}
