/** Parses form-encoded query strings (`+` and `%XX`). */
import { ApiError } from "../event/api_error.ts";
import { quoteShort } from "../event/json/quote_string.ts";

export type Parameters = ReadonlyMap<string, string>;

/**
 * Parses a query string (without its question mark).
 * @throws {ApiError} `invalid_request` for an unknown, repeated or malformed parameter.
 */
export function parseQuery(query: string, knownNames: readonly string[]): Parameters {
  const parameters = new Map<string, string>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const nameEnd = pair.indexOf("=");
    const name = decodeForm(nameEnd < 0 ? pair : pair.slice(0, nameEnd));
    const value = nameEnd < 0 ? "" : decodeForm(pair.slice(nameEnd + 1));
    if (!knownNames.includes(name)) throw parameterError("unknown", name);
    if (parameters.has(name)) throw parameterError("repeated", name);
    parameters.set(name, value);
  }
  return parameters;
}

function decodeForm(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    const message = `query string has malformed percent-encoding in ${quoteShort(text)}`;
    throw new ApiError("invalid_request", message);
  }
}

function parameterError(fault: string, name: string): ApiError {
  return new ApiError("invalid_request", `${fault} query parameter ${quoteShort(name)}`);
}
