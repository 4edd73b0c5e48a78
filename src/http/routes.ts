/** The table of routes. A path is matched exactly as it was sent. */
import { prepareBatch } from "../event/batch.ts";
import { BODY_STALL_TIMEOUT_MS, INGEST_BODY_BYTES_MAX } from "../limits.ts";
import type { Admission } from "../service/admission.ts";
import type { EventLog } from "../service/event_log.ts";
import { checkMediaType } from "./media_type.ts";
import type { HttpRequest, HttpResponse } from "./message.ts";
import { parseQuery } from "./query_string.ts";
import { withBody } from "./request_body.ts";
import { readReplayQuery, type ReplayLimits } from "./replay_request.ts";
import { replayResponse } from "./replay_response.ts";
import { jsonResponse } from "./responses.ts";
import { StallWatch } from "./stall_watch.ts";

/** Answers a request for one path and method; throws what becomes an error document. */
export type Endpoint = (request: HttpRequest, query: string) => Promise<HttpResponse>;

/** Endpoints by method. HEAD is answered as GET without a body. */
export type Route = ReadonlyMap<string, Endpoint>;

export interface RouteOptions {
  log: EventLog;
  replay: ReplayLimits;
  admission: Admission;
  /** How long a request body may bring nothing. */
  bodyStallTimeoutMs?: number;
  /** Hears of errors after the status of a response was sent. */
  onStreamFailure: (request: HttpRequest, error: unknown) => void;
}

const NO_PARAMETERS: ReadonlySet<string> = new Set();

/** All routes by path. */
export function createRoutes(options: RouteOptions): ReadonlyMap<string, Route> {
  return new Map([
    [
      "/v1/events",
      new Map([
        ["GET", createReplayEndpoint(options)],
        ["POST", createIngestEndpoint(options)],
      ]),
    ],
  ]);
}

function createReplayEndpoint({ log, replay: limits, onStreamFailure }: RouteOptions): Endpoint {
  return (request, query) =>
    replayResponse(
      log.replay(readReplayQuery(query, limits)),
      (error) => onStreamFailure(request, error),
    );
}

function createIngestEndpoint(options: RouteOptions): Endpoint {
  const { log, admission, bodyStallTimeoutMs = BODY_STALL_TIMEOUT_MS } = options;
  const stallWatch = new StallWatch(bodyStallTimeoutMs);
  const bodyLimits = { limitBytes: INGEST_BODY_BYTES_MAX, admission, stallWatch };
  return async (request, query) => {
    parseQuery(query, NO_PARAMETERS);
    checkMediaType(request);
    return jsonResponse(
      await withBody(request, bodyLimits, (body) => log.append(prepareBatch(body))),
    );
  };
}
