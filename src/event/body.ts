/** Request bodies as strict JSON. */
import { ApiError } from "./api_error.ts";
import type { JsonFault } from "./json/json_fault.ts";
import { JsonError, type JsonValue, parseJson } from "./json/strict_json.ts";

/**
 * Parses a body.
 * @param contextOf what the error document tells besides, for a fault.
 * @throws {ApiError} `invalid_request`
 */
export function parseBody(
  body: Uint8Array,
  contextOf: (fault: JsonFault) => Record<string, unknown> = () => ({}),
): JsonValue {
  try {
    return parseJson(body);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const message = `body is not valid JSON: ${error.message}`;
    throw new ApiError("invalid_request", message, contextOf(error.fault));
  }
}
