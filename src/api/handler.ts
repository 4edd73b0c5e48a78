/**
 * The handler of the HTTP API. Checks authorization, host, path and method in this order, and calls
 * the endpoint. Every error becomes an error document; unexpected ones are reported.
 */
import { ApiError } from "../event/api_error.ts";
import { createAuthorizer } from "./authorization.ts";
import { describeDefect } from "./describe_defect.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../http/message.ts";
import { errorResponse, methodNotAllowed, withoutBody } from "./responses.ts";
import { createRoutes, type Route, type RouteOptions } from "./routes.ts";
import { splitTarget } from "./target.ts";

export interface HandlerOptions extends Omit<RouteOptions, "onStreamFailure"> {
  /** Bearer token; empty for none. */
  token: string;
  /** Reports an unexpected error in one line, without payload or token. */
  report: (line: string) => void;
}

const UNAUTHORIZED = errorResponse(
  new ApiError("unauthorized", "missing or wrong `Authorization: Bearer <token>` header"),
);
const NOT_FOUND = errorResponse(new ApiError("not_found", "no such path"));
const INTERNAL_ERROR = errorResponse(
  new ApiError("internal_error", "unexpected error; see the service's standard error output"),
);
const NO_HOST = errorResponse(
  new ApiError(
    "invalid_request",
    "HTTP/1.1 requires exactly one Host header; its value is ignored",
  ),
);

/** Creates the handler of the HTTP API. It never throws. */
export function createHandler(options: HandlerOptions): HttpHandler {
  const { token, report } = options;
  const isAuthorized = createAuthorizer(token);
  const reportFailure = (request: HttpRequest, error: unknown) => {
    const { path } = splitTarget(request.target);
    report(`${request.method} ${path} failed: ${describeDefect(error)}`);
  };
  const routes = createRoutes({ ...options, onStreamFailure: reportFailure });

  const answer = async (request: HttpRequest): Promise<HttpResponse> => {
    if (!isAuthorized(request.header("authorization"))) return UNAUTHORIZED;
    if (!hasOneHost(request)) return NO_HOST;
    const { path, query } = splitTarget(request.target);
    const route = routes.get(path);
    if (route === undefined) return NOT_FOUND;
    const endpoint = route.get(request.method === "HEAD" ? "GET" : request.method);
    if (endpoint === undefined) return methodNotAllowed(allowOf(route));
    try {
      return await endpoint(request, query);
    } catch (error) {
      if (error instanceof ApiError) return errorResponse(error);
      reportFailure(request, error);
      return INTERNAL_ERROR;
    }
  };
  return async (request) => {
    const response = await answer(request);
    return request.method === "HEAD" ? withoutBody(response) : response;
  };
}

/** Checks RFC 9112 section 3.2: repeated headers are joined by ", ", and a host has no blank. */
function hasOneHost(request: HttpRequest): boolean {
  const host = request.header("host");
  return host !== null && !host.includes(", ");
}

/** Returns the value of `Allow` for a route. */
function allowOf(route: Route): string {
  const methods = [...route.keys()];
  if (route.has("GET")) methods.push("HEAD");
  return methods.sort().join(", ");
}
