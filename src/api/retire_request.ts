/** Parses the body of `POST /v1/sources/retire`. */
import { ApiError } from "../event/api_error.ts";
import { sourceFault } from "../event/names.ts";
import { memberError, parseBody } from "../event/body.ts";

const RETIRE_MEMBERS: ReadonlySet<string> = new Set(["v", "source"]);

/**
 * Returns the source to retire.
 * @throws {ApiError} `invalid_request` for members, `invalid_source_retirement` for their values.
 */
export function readRetireRequest(body: Uint8Array): string {
  const { v = 1, source } = parseBody(body, RETIRE_MEMBERS);
  if (typeof source !== "string") throw memberError("source", source, "a string");
  if (v !== 1) throw retirementError("v must be 1");
  const fault = sourceFault(source);
  if (fault !== null) throw retirementError(`source ${fault}`);
  return source;
}

function retirementError(message: string): ApiError {
  return new ApiError("invalid_source_retirement", message);
}
