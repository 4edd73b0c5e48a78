/** From the body of `POST /v1/sources/retire` to the source to retire. */
import { ApiError } from "../event/api_error.ts";
import { quoteShort } from "../event/json/quote_string.ts";
import { isJsonObject } from "../event/json/json_value.ts";
import { sourceFault } from "../event/names.ts";
import { parseBody } from "../event/body.ts";

const RETIRE_MEMBERS: ReadonlySet<string> = new Set(["v", "source"]);

/**
 * @throws {ApiError} `invalid_request` for its shape, `invalid_source_retirement` for its rules.
 */
export function readRetireRequest(body: Uint8Array): string {
  const value = parseBody(body);
  if (!isJsonObject(value)) throw requestError("body must be a JSON object");
  for (const name in value) {
    if (!RETIRE_MEMBERS.has(name)) throw requestError(`unknown member ${quoteShort(name)}`);
  }
  const { v = 1, source } = value;
  if (typeof v !== "number") throw requestError("v must be an integer");
  if (source === undefined) throw requestError("missing member source");
  if (typeof source !== "string") throw requestError("source must be a string");
  if (v !== 1) throw retirementError("v must be 1");
  const fault = sourceFault(source);
  if (fault !== null) throw retirementError(`source ${fault}`);
  return source;
}

function requestError(message: string): ApiError {
  return new ApiError("invalid_request", message);
}

function retirementError(message: string): ApiError {
  return new ApiError("invalid_source_retirement", message);
}
