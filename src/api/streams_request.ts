/** Parses the query string of `GET /v1/streams`. */
import { ApiError } from "../event/api_error.ts";
import { nameFault } from "../event/names.ts";
import { STREAMS_LIMIT_DEFAULT, STREAMS_LIMIT_MAX } from "../limits.ts";
import type { StreamsQuery } from "../service/streams.ts";
import { parseQuery, readEventId, readLimit } from "./query_string.ts";

const CODE = "invalid_streams_request";
const STREAMS_LIMITS = { defaultLimit: STREAMS_LIMIT_DEFAULT, maxLimit: STREAMS_LIMIT_MAX };
const STREAMS_PARAMETERS: ReadonlySet<string> = new Set(["source", "after", "through", "limit"]);

/**
 * Parses a query string (without its question mark).
 * @throws {ApiError} `invalid_request` for the query string, `invalid_streams_request` for a value.
 */
export function readStreamsQuery(query: string): StreamsQuery {
  const parameters = parseQuery(query, STREAMS_PARAMETERS);
  if (parameters.has("after") && !parameters.has("through")) {
    throw streamsError("after requires through, the snapshot_through_event_id of the first page");
  }
  return {
    source: readSource(parameters.get("source")),
    after: readCursor(parameters.get("after")),
    through: readEventId(parameters, "through", CODE),
    limit: readLimit(parameters, STREAMS_LIMITS, CODE),
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

function streamsError(message: string): ApiError {
  return new ApiError(CODE, message);
}
