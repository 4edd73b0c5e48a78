/**
 * Parses form-encoded query strings (`+` and `%XX`), and the body of `POST /v1/sources/retire`. A
 * malformed query or member is an `invalid_request`; an invalid value gets the route's error code.
 */
import { ApiError, type ErrorCode } from "../event/api_error.ts";
import { memberError, parseBody } from "../event/body.ts";
import { isEventId } from "../event/event_id.ts";
import { quoteShort } from "../event/json/strict_json.ts";
import { nameFault, recordKeyFault, sourceFault } from "../event/names.ts";
import { STREAMS_LIMIT_DEFAULT, STREAMS_LIMIT_MAX } from "../limits.ts";
import type { EventFilter } from "../log/line/stored_line.ts";
import type { ReplayQuery } from "../log/read/event_scan.ts";
import type { StreamsQuery } from "../service/streams.ts";

/** Decoded values by name. */
type Parameters = ReadonlyMap<string, string>;

export interface PageLimits {
  /** Page size if `limit` is absent. */
  defaultLimit: number;
  maxLimit: number;
}

const FILTERS = ["source", "stream", "kind"] as const;
const REPLAY_PARAMETERS = ["after", ...FILTERS, "record_key", "limit", "follow"];
const STREAMS_PARAMETERS = ["source", "after", "through", "limit"];
const STREAMS_LIMITS = { defaultLimit: STREAMS_LIMIT_DEFAULT, maxLimit: STREAMS_LIMIT_MAX };
const RETIRE_MEMBERS: ReadonlySet<string> = new Set(["v", "source"]);

/** @returns `follow`: whether the response continues with new events. */
export function readReplayRequest(
  query: string,
  limits: PageLimits,
): { query: ReplayQuery; follow: boolean } {
  const parameters = parseQuery(query, REPLAY_PARAMETERS);
  const code = "invalid_replay_request";
  const follow = parameters.get("follow") ?? "false";
  if (follow !== "true" && follow !== "false") {
    throw new ApiError(code, "follow must be true or false");
  }
  return {
    query: {
      after: readEventId(parameters, "after", code),
      filter: readFilter(parameters, code),
      limitEvents: readLimit(parameters, limits, code),
    },
    follow: follow === "true",
  };
}

/** Does not validate names and kinds, since an invalid name or kind matches no event. */
function readFilter(parameters: Parameters, code: ErrorCode): EventFilter {
  const recordKey = parameters.get("record_key");
  if (recordKey !== undefined) checkValue(code, "record_key", recordKeyFault(recordKey));
  const [source, stream, kind] = FILTERS.map((name) => parameters.get(name));
  return { source, stream, recordKey, kind };
}

export function readStreamsQuery(query: string): StreamsQuery {
  const parameters = parseQuery(query, STREAMS_PARAMETERS);
  const code = "invalid_streams_request";
  const source = parameters.get("source");
  const after = parameters.get("after");
  if (after !== undefined && !parameters.has("through")) {
    const message = "after requires through, the snapshot_through_event_id of the first page";
    throw new ApiError(code, message);
  }
  if (source !== undefined) checkValue(code, "source", nameFault(source));
  return {
    source,
    after: after === undefined ? undefined : readCursor(after, code),
    through: readEventId(parameters, "through", code),
    limit: readLimit(parameters, STREAMS_LIMITS, code),
  };
}

function readCursor(cursor: string, code: ErrorCode): StreamsQuery["after"] {
  const [source, stream, ...rest] = cursor.split("/");
  const isCursor = source !== undefined && stream !== undefined && rest.length === 0 &&
    nameFault(source) === null && nameFault(stream) === null;
  if (isCursor) return { source, stream };
  throw new ApiError(code, "after must be the next_after of an earlier page: source/stream");
}

export function readRetireRequest(body: Uint8Array): string {
  const { v = 1, source } = parseBody(body, RETIRE_MEMBERS);
  const code = "invalid_source_retirement";
  if (typeof source !== "string") throw memberError("source", source, "a string");
  if (v !== 1) throw new ApiError(code, "v must be 1");
  checkValue(code, "source", sourceFault(source));
  return source;
}

function checkValue(code: ErrorCode, name: string, fault: string | null): void {
  if (fault !== null) throw new ApiError(code, `${name} ${fault}`);
}

function readEventId(parameters: Parameters, name: string, code: ErrorCode): string | undefined {
  const id = parameters.get(name);
  if (id === undefined || isEventId(id)) return id;
  throw new ApiError(code, `${name} must be an event id: a UUIDv7 in lowercase with hyphens`);
}

function readLimit(parameters: Parameters, limits: PageLimits, code: ErrorCode): number {
  const { defaultLimit, maxLimit } = limits;
  const text = parameters.get("limit");
  if (text === undefined) return defaultLimit;
  const limit = /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
  if (limit <= maxLimit) return limit;
  throw new ApiError(code, `limit must be an integer from 1 to ${maxLimit}`);
}

/** Parses a query string without its question mark. Every parameter must be known and unique. */
export function parseQuery(query: string, knownNames: readonly string[]): Parameters {
  const parameters = new Map<string, string>();
  if (query === "") return parameters;
  try {
    // Rejects what URLSearchParams would replace or keep.
    decodeURIComponent(query);
  } catch {
    const message = `query string has malformed percent-encoding in ${quoteShort(query)}`;
    throw new ApiError("invalid_request", message);
  }
  // Without the `&`, a question mark at the start would be dropped.
  for (const [name, value] of new URLSearchParams(`&${query}`)) {
    if (!knownNames.includes(name)) throw parameterError("unknown", name);
    if (parameters.has(name)) throw parameterError("repeated", name);
    parameters.set(name, value);
  }
  return parameters;
}

function parameterError(fault: string, name: string): ApiError {
  return new ApiError("invalid_request", `${fault} query parameter ${quoteShort(name)}`);
}
