/** The table of routes. A path is matched exactly as it was sent. */
import { prepareBatch } from "../event/batch.ts";
import type { PreparedBatch } from "../event/types.ts";
import {
  BODY_STALL_TIMEOUT_MS,
  CONTROL_BODY_BYTES_MAX,
  FOLLOW_STALL_TIMEOUT_MS,
  INGEST_BODY_BYTES_MAX,
} from "../limits.ts";
import type { Admission } from "../service/admission.ts";
import type { EventLog } from "../service/event_log.ts";
import { PreparedRoom } from "../service/prepared_room.ts";
import { FOLLOW_HEAD, followResponse } from "./follow_response.ts";
import { checkMediaType } from "./media_type.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import { type PageLimits, parseQuery } from "./query_string.ts";
import { withBody } from "./request_body.ts";
import { readReplayRequest } from "./replay_request.ts";
import { replayResponse } from "./replay_response.ts";
import { jsonResponse } from "./responses.ts";
import { readRetireRequest } from "./retire_request.ts";
import { StallWatch } from "../http/stall_watch.ts";
import { readStreamsQuery } from "./streams_request.ts";

/** Answers a request for one path and method; throws what becomes an error document. */
export type Endpoint = (request: HttpRequest, query: string) => Promise<HttpResponse>;

/** Endpoints by method. HEAD is answered as GET without a body. */
export type Route = ReadonlyMap<string, Endpoint>;

export interface RouteOptions {
  log: EventLog;
  replay: PageLimits;
  admission: Admission;
  /** Makes a batch of a body; `prepareBatch()` if absent, which makes all others wait. */
  prepare?: (body: Uint8Array) => PreparedBatch | Promise<PreparedBatch>;
  /** How long a request body may bring nothing. */
  bodyStallTimeoutMs?: number;
  /** How long a follower may take nothing while a record waits. */
  followStallTimeoutMs?: number;
  /** Hears of errors after the status of a response was sent. */
  onStreamFailure: (request: HttpRequest, error: unknown) => void;
}

const NO_PARAMETERS: ReadonlySet<string> = new Set();

/** All routes by path. */
export function createRoutes(options: RouteOptions): ReadonlyMap<string, Route> {
  const readBody = createBodyReader(options);
  return new Map([
    [
      "/v1/events",
      new Map([
        ["GET", createReplayEndpoint(options)],
        ["POST", createIngestEndpoint(options, readBody)],
      ]),
    ],
    ["/v1/streams", new Map([["GET", createStreamsEndpoint(options.log)]])],
    ["/v1/sources/retire", new Map([["POST", createRetireEndpoint(options.log, readBody)]])],
  ]);
}

function createReplayEndpoint(options: RouteOptions): Endpoint {
  const { log, replay: limits, onStreamFailure } = options;
  const { followStallTimeoutMs = FOLLOW_STALL_TIMEOUT_MS } = options;
  const stallWatch = new StallWatch(followStallTimeoutMs);
  // deno-lint-ignore require-await -- what it throws is to be a rejection
  return async (request, target) => {
    const { query, follow } = readReplayRequest(target, limits);
    if (!follow) {
      return replayResponse(log.replay(query), (error) => onStreamFailure(request, error));
    }
    if (request.method === "HEAD") return FOLLOW_HEAD;
    return followResponse(log.follow(query), stallWatch);
  };
}

function createStreamsEndpoint(log: EventLog): Endpoint {
  return async (_request, query) => jsonResponse(await log.streams(readStreamsQuery(query)));
}

function createIngestEndpoint(options: RouteOptions, readBody: BodyReader): Endpoint {
  const { log, prepare = prepareBatch } = options;
  const room = new PreparedRoom();
  const append = (batch: PreparedBatch) => log.append(batch);
  return (request, query) =>
    readBody(
      request,
      query,
      INGEST_BODY_BYTES_MAX,
      (body) => room.run(body.length, () => prepare(body), append),
    );
}

function createRetireEndpoint(log: EventLog, readBody: BodyReader): Endpoint {
  return (request, query) =>
    readBody(
      request,
      query,
      CONTROL_BODY_BYTES_MAX,
      (body) => log.retire(readRetireRequest(body)),
    );
}

/** Checks a POST, reads its body and answers with the document that `use` makes of it. */
type BodyReader = (
  request: HttpRequest,
  query: string,
  limitBytes: number,
  use: (body: Uint8Array) => Promise<unknown>,
) => Promise<HttpResponse>;

function createBodyReader(options: RouteOptions): BodyReader {
  const { admission, bodyStallTimeoutMs = BODY_STALL_TIMEOUT_MS } = options;
  const stallWatch = new StallWatch(bodyStallTimeoutMs);
  return async (request, query, limitBytes, use) => {
    parseQuery(query, NO_PARAMETERS);
    checkMediaType(request);
    return jsonResponse(await withBody(request, { limitBytes, admission, stallWatch }, use));
  };
}
