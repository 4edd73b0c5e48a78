/**
 * Parses query strings in form encoding (`+` and `%XX`). Every parameter must be known, unique and
 * well-formed; routes check the values.
 */
import { ApiError, type ErrorCode } from "../event/api_error.ts";
import { isEventId } from "../event/event_id.ts";
import { quoteShort } from "../event/json/quote_string.ts";

export interface PageLimits {
  /** Page size without a `limit` parameter. */
  defaultLimit: number;
  maxLimit: number;
}

/** Decoded values by name. */
export type Parameters = ReadonlyMap<string, string>;

const NO_PARAMETERS: Parameters = new Map();

/** Characters that RFC 3986 requires to be percent-encoded; runtimes decode them differently. */
const UNENCODED = /[^\x21-\x7e]/;

/**
 * Parses a query string (without its question mark).
 * @throws {ApiError} `invalid_request` for an unknown, repeated or malformed parameter.
 */
export function parseQuery(query: string, knownNames: ReadonlySet<string>): Parameters {
  if (query === "") return NO_PARAMETERS;
  if (UNENCODED.test(query)) {
    throw new ApiError("invalid_request", "query string has a character that is not URL-encoded");
  }
  const parameters = new Map<string, string>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const nameEnd = pair.indexOf("=");
    const name = decodeForm(nameEnd < 0 ? pair : pair.slice(0, nameEnd));
    const value = nameEnd < 0 ? "" : decodeForm(pair.slice(nameEnd + 1));
    if (!knownNames.has(name)) throw parameterError("unknown", name);
    if (parameters.has(name)) throw parameterError("repeated", name);
    parameters.set(name, value);
  }
  return parameters;
}

/**
 * Returns a parameter that is an event id; undefined if absent.
 * @throws {ApiError} with `code`.
 */
export function readEventId(
  parameters: Parameters,
  name: string,
  code: ErrorCode,
): string | undefined {
  const id = parameters.get(name);
  if (id === undefined || isEventId(id)) return id;
  throw new ApiError(code, `${name} must be an event id: a UUIDv7 in lowercase with hyphens`);
}

/** Returns the parameter `limit`. @throws {ApiError} with `code`. */
export function readLimit(
  parameters: Parameters,
  { defaultLimit, maxLimit }: PageLimits,
  code: ErrorCode,
): number {
  const text = parameters.get("limit");
  if (text === undefined) return defaultLimit;
  const limit = /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
  if (limit <= maxLimit) return limit;
  throw new ApiError(code, `limit must be an integer from 1 to ${maxLimit}`);
}

function decodeForm(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    throw new ApiError(
      "invalid_request",
      `query string has malformed percent-encoding in ${quoteShort(text)}`,
    );
  }
}

function parameterError(fault: string, name: string): ApiError {
  return new ApiError("invalid_request", `${fault} query parameter ${quoteShort(name)}`);
}
