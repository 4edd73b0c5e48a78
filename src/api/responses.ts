/** Responses with a JSON document, and the one place where errors turn into them. */
import { Buffer } from "node:buffer";
import { ApiError, ERROR_STATUS, type ErrorCode } from "../event/api_error.ts";
import type { HttpResponse, MalformedRequestError } from "../http/message.ts";

/** How long a 429 tells the client to wait. */
const RETRY_AFTER_SECONDS = 1;

/** Headers of every JSON document. */
export const JSON_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "application/json",
};

/** What the headers of some errors say besides. */
const ERROR_HEADERS: { readonly [code in ErrorCode]?: Readonly<Record<string, string>> } = {
  unauthorized: { ...JSON_HEADERS, "www-authenticate": "Bearer" },
  overloaded: { ...JSON_HEADERS, "retry-after": String(RETRY_AFTER_SECONDS) },
};

/** 200 with a JSON document. */
export function jsonResponse(document: unknown): HttpResponse {
  return { status: 200, headers: JSON_HEADERS, body: JSON.stringify(document) };
}

/** The error document of an error code, with its status and headers. */
export function errorResponse({ code, message, context }: ApiError): HttpResponse {
  return {
    status: ERROR_STATUS[code],
    headers: ERROR_HEADERS[code] ?? JSON_HEADERS,
    body: JSON.stringify({ error: code, message, ...context }),
  };
}

/** The answer to what is not HTTP/1.1 as this service speaks it. */
export function refusalResponse({ message }: MalformedRequestError): HttpResponse {
  return errorResponse(new ApiError("invalid_request", message));
}

/** 405 for a path that has other methods. `allow` lists them. */
export function methodNotAllowed(allow: string): HttpResponse {
  const error = new ApiError("method_not_allowed", `this path has the methods ${allow}`);
  return { ...errorResponse(error), headers: { ...JSON_HEADERS, allow } };
}

/** The answer to HEAD where `response` answers GET: the same status and headers. */
export function withoutBody(response: HttpResponse): HttpResponse {
  const { status, headers, body } = response;
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    return { status, headers, body: null };
  }
  const length = String(Buffer.byteLength(body));
  return { status, headers: { ...headers, "content-length": length }, body: null };
}
