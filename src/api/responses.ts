/** JSON responses and error documents. */
import { Buffer } from "node:buffer";
import { ApiError, ERROR_STATUS, type ErrorCode } from "../event/api_error.ts";
import type { HttpResponse, MalformedRequestError } from "../http/message.ts";

export const JSON_HEADERS: HttpResponse["headers"] = { "content-type": "application/json" };

const ERROR_HEADERS: { readonly [code in ErrorCode]?: HttpResponse["headers"] } = {
  unauthorized: { ...JSON_HEADERS, "www-authenticate": "Bearer" },
  overloaded: { ...JSON_HEADERS, "retry-after": "1" },
};

export function jsonResponse(document: unknown): HttpResponse {
  return { status: 200, headers: JSON_HEADERS, body: JSON.stringify(document) };
}

export function errorResponse(
  { code, message, context }: ApiError,
): HttpResponse & { body: string } {
  return {
    status: ERROR_STATUS[code],
    headers: ERROR_HEADERS[code] ?? JSON_HEADERS,
    body: JSON.stringify({ error: code, message, ...context }),
  };
}

/** Returns the response to malformed HTTP. */
export function refusalResponse(error: MalformedRequestError, isHead: boolean): HttpResponse {
  const response = errorResponse(new ApiError("invalid_request", error.message));
  return isHead ? withoutBody(response) : response;
}

/** Returns the response to HEAD, given the response to GET. */
export function withoutBody(response: HttpResponse): HttpResponse {
  const { headers, body } = response;
  const hasLength = typeof body === "string" || body instanceof Uint8Array;
  const length = hasLength ? { "content-length": String(Buffer.byteLength(body)) } : {};
  return { ...response, headers: { ...headers, ...length }, body: null };
}
