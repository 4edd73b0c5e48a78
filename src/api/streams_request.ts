/** From the query string of `GET /v1/streams` to a page of streams. */
import { ApiError } from "../event/api_error.ts";
import { isEventId } from "../event/event_id.ts";
import { nameFault } from "../event/names.ts";
import { STREAMS_LIMIT_DEFAULT, STREAMS_LIMIT_MAX } from "../limits.ts";
import type { StreamsQuery } from "../service/streams.ts";
import { parseQuery } from "./query_string.ts";

const STREAMS_PARAMETERS: ReadonlySet<string> = new Set(["source", "after", "through", "limit"]);

/**
 * Reads a query string (without its question mark).
 * @throws {ApiError} `invalid_request` for the query string, `invalid_streams_request` for a value.
 */
export function readStreamsQuery(query: string): StreamsQuery {
  const parameters = parseQuery(query, STREAMS_PARAMETERS);
  const through = parameters.get("through");
  if (parameters.has("after") && through === undefined) {
    throw streamsError("after needs through: the snapshot_through_event_id of the first page");
  }
  return {
    source: readSource(parameters.get("source")),
    after: readCursor(parameters.get("after")),
    through: readThrough(through),
    limit: readLimit(parameters.get("limit")),
  };
}

function readSource(source: string | undefined): string | undefined {
  const fault = source === undefined ? null : nameFault(source);
  if (fault !== null) throw streamsError(`source ${fault}`);
  return source;
}

function readCursor(cursor: string | undefined): StreamsQuery["after"] {
  if (cursor === undefined) return undefined;
  const [source, stream, ...rest] = cursor.split("/");
  const isCursor = source !== undefined && stream !== undefined && rest.length === 0 &&
    nameFault(source) === null && nameFault(stream) === null;
  if (!isCursor) throw streamsError("after must be source/stream, the next_after of a page");
  return { source, stream };
}

function readThrough(through: string | undefined): string | undefined {
  if (through === undefined || isEventId(through)) return through;
  throw streamsError("through must be an event id: a UUIDv7 in lowercase with hyphens");
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return STREAMS_LIMIT_DEFAULT;
  const limit = /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
  if (limit <= STREAMS_LIMIT_MAX) return limit;
  throw streamsError(`limit must be an integer from 1 to ${STREAMS_LIMIT_MAX}`);
}

function streamsError(message: string): ApiError {
  return new ApiError("invalid_streams_request", message);
}
