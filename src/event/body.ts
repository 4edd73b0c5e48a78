/** Parses request bodies, which are JSON objects with known members. */
import { ApiError } from "./api_error.ts";
import {
  isJsonObject,
  JsonError,
  type JsonObject,
  type JsonValue,
  parseJson,
  quoteShort,
  type ValueSkipper,
} from "./json/strict_json.ts";

/**
 * Parses a body: an object whose members are all in `knownNames`. If present, `v` must be a number.
 * @param contextOf returns additional members for the error document for a fault.
 * @param skipper may skip values of members.
 * @throws {ApiError} `invalid_request`.
 */
export function parseBody(
  body: Uint8Array,
  knownNames: ReadonlySet<string>,
  contextOf: (error: JsonError) => Record<string, unknown> = () => ({}),
  skipper: ValueSkipper | undefined = undefined,
): JsonObject {
  let value;
  try {
    value = parseJson(body, skipper);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const message = error.kind === "syntax" ? `body is ${error.message}` : error.message;
    throw new ApiError("invalid_request", message, contextOf(error));
  }
  if (!isJsonObject(value)) throw requestError("body must be a JSON object");
  for (const name in value) {
    if (!knownNames.has(name)) throw requestError(`unknown member ${quoteShort(name)}`);
  }
  const { v = 1 } = value;
  if (typeof v !== "number") throw requestError("v must be an integer");
  return value;
}

export function requestError(message: string): ApiError {
  return new ApiError("invalid_request", message);
}

/** Creates the error for a required member that is missing or has the wrong type. */
export function memberError(name: string, value: JsonValue | undefined, type: string): ApiError {
  return requestError(value === undefined ? `missing member ${name}` : `${name} must be ${type}`);
}
