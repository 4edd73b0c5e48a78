/**
 * Handles HTTP API requests: checks authorization, host, path and method, in this order, then calls
 * the endpoint. Every error becomes an error document; unexpected errors are also reported.
 */
import { ApiError } from "../event/api_error.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../http/message.ts";
import {
  CONTROL_BODY_BYTES_MAX,
  INGEST_BODY_BYTES_MAX,
  RESPONSE_BYTES_MAX,
  RESPONSE_RESERVED_BYTES,
} from "../limits.ts";
import { Admission } from "../service/admission.ts";
import type { EventLog } from "../service/event_log.ts";
import { createAuthorizer } from "./authorization.ts";
import { describeDefect } from "./describe_defect.ts";
import { FOLLOW_HEAD, followResponse } from "./follow_response.ts";
import { replayResponse } from "./replay_response.ts";
import { withBody } from "./request_body.ts";
import {
  type PageLimits,
  parseQuery,
  readReplayRequest,
  readRetireRequest,
  readStreamsQuery,
} from "./requests.ts";
import { errorResponse, JSON_HEADERS, jsonResponse, withoutBody } from "./responses.ts";

export interface HandlerOptions {
  log: EventLog;
  /** The required bearer token. If empty, requests need no token. */
  token: string;
  replay: PageLimits;
  /** Memory for request bodies. */
  admission?: Admission;
  /** Reports an unexpected error in one line that contains no payload or token. */
  report: (line: string) => void;
  /** Called with each response before it is sent. */
  onResponse?: (response: HttpResponse) => void;
}

/** Handles requests for one path and method; errors it throws become error documents. */
type Endpoint = (request: HttpRequest, query: string) => Promise<HttpResponse>;

/** Endpoints by method. The body of the response to HEAD is dropped. */
type Route = ReadonlyMap<string, Endpoint>;

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/** A shorter document needs no reservation: the buffers of a socket hold most of it. */
const UNRESERVED_BYTES_MAX = 64 * 1024;
/** A stream in a listing: two names of 128 bytes, an id, a count and the names of the members. */
const STREAM_BYTES_MAX = 512;

/** Tells probes, which only read, that the writer has stopped. */
const WRITER_POISONED = { "writer-state": "poisoned" };

const UNAUTHORIZED = errorResponse(
  new ApiError("unauthorized", "missing or wrong `Authorization: Bearer <token>` header"),
);
const INTERNAL_ERROR = errorResponse(
  new ApiError("internal_error", "unexpected error; see the service's standard error output"),
);
const OVERLOADED = errorResponse(
  new ApiError("overloaded", "too many responses are in memory; retry later"),
);

/** Creates the handler for the HTTP API. The handler never throws. */
export function createHandler(options: HandlerOptions): HttpHandler {
  const { log, token, report, onResponse } = options;
  const isAuthorized = createAuthorizer(token);
  const memory = new ResponseMemory();
  const reportFailure = ({ method, target }: HttpRequest, error: unknown) => {
    report(`${method} ${splitTarget(target).path} failed: ${describeDefect(error)}`);
  };
  const routes = createRoutes(options, memory, reportFailure);

  /** Passes a request to its endpoint. @throws {ApiError} */
  const respond = (request: HttpRequest): HttpResponse | Promise<HttpResponse> => {
    if (!isAuthorized(request.header("authorization"))) return UNAUTHORIZED;
    checkHost(request);
    const { path, query } = splitTarget(request.target);
    const route = routes.get(path);
    if (route === undefined) throw new ApiError("not_found", "no such path");
    return route.get(request.method)?.(request, query) ?? methodNotAllowed(route);
  };
  return async (request) => {
    let response;
    try {
      response = await respond(request);
    } catch (error) {
      if (error instanceof ApiError) response = memory.reserveFor(errorResponse(error));
      else {
        reportFailure(request, error);
        response = INTERNAL_ERROR;
      }
    }
    onResponse?.(response);
    if (log.isPoisoned) {
      response = { ...response, headers: { ...response.headers, ...WRITER_POISONED } };
    }
    return request.method === "HEAD" ? withoutBody(response) : response;
  };
}

/** Memory for responses, which they hold until they have been written. */
export class ResponseMemory {
  readonly #admission = new Admission({
    totalBytes: 2 * RESPONSE_BYTES_MAX,
    bodyBytes: RESPONSE_BYTES_MAX,
  });

  /** Returns a document, or an error document if it is long and finds no memory. */
  reserveFor(response: HttpResponse & { body: string }): HttpResponse {
    const sizeBytes = response.body.length;
    if (sizeBytes <= UNRESERVED_BYTES_MAX) return response;
    const reservation = this.#admission.tryAdmit(sizeBytes);
    if (reservation === null) return OVERLOADED;
    return { ...response, onEnd: () => this.#admission.release(reservation) };
  }

  /** Reserves memory, then creates a response. @throws {ApiError} `overloaded` */
  async reserve(bytes: number, respond: () => Promise<HttpResponse>): Promise<HttpResponse> {
    const reservation = await this.#admission.admit(bytes, bytes <= UNRESERVED_BYTES_MAX);
    const release = () => this.#admission.release(reservation);
    try {
      const response = await respond();
      const onEnd = () => {
        response.onEnd?.();
        release();
      };
      return { ...response, onEnd };
    } catch (error) {
      release();
      throw error;
    }
  }
}

/** Routes by path. @param reportFailure called with errors that occur after the status is sent. */
export function createRoutes(
  options: Omit<HandlerOptions, "token" | "report">,
  memory: ResponseMemory,
  reportFailure: (request: HttpRequest, error: unknown) => void,
): ReadonlyMap<string, Route> {
  const { log, replay, admission = new Admission() } = options;

  /** Responds with the document that `use` returns for the body. */
  const post = (limitBytes: number, use: (body: Uint8Array) => Promise<unknown>): Endpoint => {
    return (request, query) => {
      parseQuery(query, []);
      return withBody(request, limitBytes, admission, use).then(jsonResponse);
    };
  };
  const getEvents: Endpoint = async (request, target) => {
    const { query, follow } = readReplayRequest(target, replay);
    if (follow) return request.method === "HEAD" ? FOLLOW_HEAD : followResponse(log.follow(query));
    return await memory.reserve(RESPONSE_RESERVED_BYTES, async () => {
      const events = log.replay(query, () => request.client());
      const fail = (error: unknown) => reportFailure(request, error);
      return { ...await replayResponse(events, request, fail), onEnd: () => events.close() };
    });
  };
  const getStreams: Endpoint = async (_request, target) => {
    const query = readStreamsQuery(target);
    const bytes = Math.min(query.limit * STREAM_BYTES_MAX, RESPONSE_RESERVED_BYTES);
    return await memory.reserve(bytes, async () => jsonResponse(await log.streams(query)));
  };
  const ingest = post(INGEST_BODY_BYTES_MAX, (body) => log.ingest(body));
  const retire = post(CONTROL_BODY_BYTES_MAX, (body) => log.retire(readRetireRequest(body)));
  return new Map([
    ["/v1/events", new Map([["GET", getEvents], ["HEAD", getEvents], ["POST", ingest]])],
    ["/v1/streams", new Map([["GET", getStreams], ["HEAD", getStreams]])],
    ["/v1/sources/retire", new Map([["POST", retire]])],
  ]);
}

/** There must be one Host header, which HTTP/1.0 may omit. Repeated ones are joined by ", ". */
function checkHost(request: HttpRequest): void {
  const host = request.header("host");
  if (host === null ? !request.isHttp11 : !host.includes(", ")) return;
  throw new ApiError("invalid_request", "an HTTP/1.1 request must have exactly one Host header");
}

function methodNotAllowed(route: Route): HttpResponse {
  const allow = [...route.keys()].join(", ");
  const error = new ApiError("method_not_allowed", `method not allowed; use ${allow}`);
  return { ...errorResponse(error), headers: { ...JSON_HEADERS, allow } };
}

/** Splits a target in origin or absolute form (RFC 9112 section 3.2) without decoding it. */
function splitTarget(target: string): { path: string; query: string } {
  let origin = target.replace(ABSOLUTE_FORM, "");
  if (origin !== target && !origin.startsWith("/")) origin = `/${origin}`;
  const [path] = origin.split("?", 1) as [string];
  return { path, query: origin.slice(path.length + 1) };
}
