/** Request bodies as strict JSON. */
import { ApiError } from "./api_error.ts";
import { JsonError, type JsonValue, parseJson } from "./json/strict_json.ts";

/**
 * Parses a body.
 * @param contextOf what the error document tells besides, for a fault.
 * @throws {ApiError} `invalid_request`
 */
export function parseBody(
  body: Uint8Array,
  contextOf: (error: JsonError) => Record<string, unknown> = () => ({}),
): JsonValue {
  try {
    return parseJson(body);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const message = error.fault.kind === "syntax" ? `body is ${error.message}` : error.message;
    throw new ApiError("invalid_request", message, contextOf(error));
  }
}
