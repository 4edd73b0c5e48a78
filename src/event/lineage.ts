/**
 * Lineage markers. The first event of a source's first batch may declare the retired source that it
 * continues. This module checks only the marker's form; the writer checks its claim.
 */
import { ApiError } from "./api_error.ts";
import { isEventId } from "./event_id.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "./json/strict_json.ts";
import { sourceFault } from "./names.ts";
import { SOURCE_SUCCEEDED_KIND } from "./system_names.ts";
import type { LineageMarker, SubmittedEvent } from "./types.ts";

/** Returns the marker in an event of its stream. @throws {ApiError} `invalid_source_lineage`. */
export function lineageMarker(source: string, event: SubmittedEvent): LineageMarker {
  if (event.kind !== SOURCE_SUCCEEDED_KIND) {
    throw lineageError(`kind must be ${SOURCE_SUCCEEDED_KIND}`);
  }
  if (event.occurred_at !== undefined) throw lineageError("occurred_at must be absent");
  const marker = readPayload(event.payload as JsonValue);
  if (event.record_key !== marker.predecessor_source) {
    throw lineageError("record_key must equal predecessor_source");
  }
  if (marker.predecessor_source === source) {
    throw lineageError("predecessor_source must not be the source of the batch");
  }
  return marker;
}

function readPayload(payload: JsonValue): LineageMarker {
  const isClosed = isJsonObject(payload) && Object.keys(payload).length === 3 && payload.v === 1;
  const { predecessor_source, predecessor_final_frontier }: JsonObject = isClosed ? payload : {};
  if (typeof predecessor_source !== "string" || typeof predecessor_final_frontier !== "string") {
    throw lineageError(
      "payload must be {v: 1, predecessor_source: string, predecessor_final_frontier: string}",
    );
  }
  const fault = sourceFault(predecessor_source);
  if (fault !== null) throw lineageError(`predecessor_source ${fault}`);
  if (!isEventId(predecessor_final_frontier)) {
    throw lineageError("predecessor_final_frontier must be an event id");
  }
  return { predecessor_source, predecessor_final_frontier };
}

export function lineageError(reason: string): ApiError {
  return new ApiError("invalid_source_lineage", `invalid lineage marker: ${reason}`);
}
