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

/** Handles requests for one path and method; errors it throws become error documents. */
export type Endpoint = (request: HttpRequest, query: string) => Promise<HttpResponse>;

/** Endpoints by method. HEAD is GET without a body. */
export type Route = ReadonlyMap<string, Endpoint>;

export interface RouteOptions {
  log: EventLog;
  replay: PageLimits;
  admission: Admission;
  /** Prepares a batch from a body; `prepareBatch()`, on this thread, if absent. */
  prepare?: (body: Uint8Array) => PreparedBatch | Promise<PreparedBatch>;
  /** Timeout of a request body that brings nothing. */
  bodyStallTimeoutMs?: number;
  /** Timeout of a follower that takes nothing while a record waits. */
  followStallTimeoutMs?: number;
  /** Called with errors after the status was sent. */
  onStreamFailure: (request: HttpRequest, error: unknown) => void;
}

const NO_PARAMETERS: ReadonlySet<string> = new Set();

/** All routes by path. */
export function createRoutes(options: RouteOptions): ReadonlyMap<string, Route> {
  const { log } = options;
  const post = createBodyReader(options);
  const getStreams: Endpoint = async (_request, query) =>
    jsonResponse(await log.streams(readStreamsQuery(query)));
  const retire = (body: Uint8Array) => log.retire(readRetireRequest(body));
  return new Map([
    [
      "/v1/events",
      new Map([
        ["GET", createReplayEndpoint(options)],
        ["POST", post(INGEST_BODY_BYTES_MAX, createIngest(options))],
      ]),
    ],
    ["/v1/streams", new Map([["GET", getStreams]])],
    ["/v1/sources/retire", new Map([["POST", post(CONTROL_BODY_BYTES_MAX, retire)]])],
  ]);
}

function createReplayEndpoint(options: RouteOptions): Endpoint {
  const { log, replay: limits, onStreamFailure } = options;
  const { followStallTimeoutMs = FOLLOW_STALL_TIMEOUT_MS } = options;
  const stallWatch = new StallWatch(followStallTimeoutMs);
  // deno-lint-ignore require-await -- errors must reject
  return async (request, target) => {
    const { query, follow } = readReplayRequest(target, limits);
    if (!follow) {
      return replayResponse(log.replay(query), (error) => onStreamFailure(request, error));
    }
    if (request.method === "HEAD") return FOLLOW_HEAD;
    return followResponse(log.follow(query), stallWatch);
  };
}

/** Makes the response document from the body of a POST. */
type UseBody = (body: Uint8Array) => Promise<unknown>;

function createIngest({ log, prepare = prepareBatch }: RouteOptions): UseBody {
  const room = new PreparedRoom();
  const append = (batch: PreparedBatch) => log.append(batch);
  return (body) => room.run(body.length, () => prepare(body), append);
}

/** Endpoints that check a POST, read its body and send the document that `use` returns. */
function createBodyReader(options: RouteOptions) {
  const { admission, bodyStallTimeoutMs = BODY_STALL_TIMEOUT_MS } = options;
  const stallWatch = new StallWatch(bodyStallTimeoutMs);
  return (limitBytes: number, use: UseBody): Endpoint => async (request, query) => {
    parseQuery(query, NO_PARAMETERS);
    checkMediaType(request);
    return jsonResponse(await withBody(request, { limitBytes, admission, stallWatch }, use));
  };
}
