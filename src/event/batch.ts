/**
 * Parses and validates the body of an ingest request. Checks run in this order, and the first kind
 * of fault is reported: JSON, batch members, event count, batch rules, events, lineage marker.
 */
import { BATCH_EVENTS_MAX } from "../limits.ts";
import { ApiError, type EventFault } from "./api_error.ts";
import { encodeBatch } from "./batch_encoder.ts";
import { readFastBatch } from "./batch_fast_path.ts";
import { memberError, parseBody, requestError } from "./body.ts";
import { isEventId } from "./event_id.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "./json/strict_json.ts";
import type { JsonError } from "./json/strict_json.ts";
import { lineageMarker } from "./lineage.ts";
import { batchIdFault, nameFault, sourceFault } from "./names.ts";
import { ownText } from "./own_text.ts";
import { prepareEvent } from "./submitted_event.ts";
import type { CheckedBatch, PreparedBatch, PreparedEvent, StreamPrecondition } from "./types.ts";

/**
 * A batch with all members of the right JSON types. Its names are detached strings: substrings
 * would keep the text of the body in memory while the batch waits.
 */
interface SubmittedBatch {
  v: JsonValue;
  batchId: string;
  source: string;
  events: JsonValue[];
  precondition: JsonObject | undefined;
}

/**
 * Parses and validates a batch, then canonicalizes and hashes its payloads.
 *
 * @throws {ApiError} `invalid_request`, `invalid_batch`, `body_too_large`, `invalid_events` (with
 *   every bad event in `errors`) or `invalid_source_lineage`.
 */
export function prepareBatch(body: Uint8Array): PreparedBatch {
  return readFastBatch(body) ?? encodeBatch(checkBatch(body));
}

/** The slow path, which builds the values of the body. Throws like `prepareBatch()`. */
export function checkBatch(body: Uint8Array): CheckedBatch {
  const batch = readBatch(parseBody(body, BATCH_MEMBERS, eventErrors));
  checkMembers(batch);
  const precondition = readPrecondition(batch);
  const events = prepareEvents(batch.events);
  return {
    source: batch.source,
    batchId: batch.batchId,
    events,
    precondition,
    lineage: lineageMarker(batch.source, events) ?? undefined,
  };
}

/** Names the event that contains a JSON fault, if any. */
function eventErrors({ fault, message }: JsonError): { errors?: EventFault[] } {
  const [member, index] = fault.path;
  if (member !== "events" || typeof index !== "number") return {};
  return { errors: [{ index, code: "invalid_event", message }] };
}

function readBatch(body: JsonObject): SubmittedBatch {
  const { v = 1, batch_id: batchId, source, events, stream_precondition: precondition } = body;
  if (typeof batchId !== "string") throw memberError("batch_id", batchId, "a string");
  if (typeof source !== "string") throw memberError("source", source, "a string");
  if (!Array.isArray(events)) throw memberError("events", events, "an array");
  if (precondition !== undefined && !isJsonObject(precondition)) {
    throw requestError("stream_precondition must be an object");
  }
  return { v, batchId: ownText(batchId), source: ownText(source), events, precondition };
}

const BATCH_MEMBERS = new Set(["v", "batch_id", "source", "events", "stream_precondition"]);

function checkMembers(batch: SubmittedBatch): void {
  const eventCount = batch.events.length;
  if (eventCount > BATCH_EVENTS_MAX) {
    throw new ApiError(
      "body_too_large",
      `batch has ${eventCount} events, more than ${BATCH_EVENTS_MAX}; submit it in parts`,
    );
  }
  if (eventCount === 0) throw batchError("events must not be empty");
  if (batch.v !== 1) throw batchError("v must be 1");
  const batchId = batchIdFault(batch.batchId);
  if (batchId !== null) throw batchError(`batch_id ${batchId}`);
  const source = sourceFault(batch.source);
  if (source !== null) throw batchError(`source ${source}`);
}

function readPrecondition(batch: SubmittedBatch): StreamPrecondition | undefined {
  if (batch.precondition === undefined) return undefined;
  const { stream, expected_frontier: expectedFrontier } = batch.precondition;
  const isClosed = Object.keys(batch.precondition).length === 2;
  if (!isClosed || typeof stream !== "string" || expectedFrontier === undefined) {
    throw batchError(
      "stream_precondition must have stream, a string, and expected_frontier, an event id or null",
    );
  }
  const fault = nameFault(stream);
  if (fault !== null) throw batchError(`stream_precondition.stream ${fault}`);
  if (expectedFrontier !== null && !isFrontier(expectedFrontier)) {
    throw batchError("stream_precondition.expected_frontier must be an event id or null");
  }
  checkTargets(batch.events, stream);
  return {
    stream: ownText(stream),
    expectedFrontier: expectedFrontier && ownText(expectedFrontier),
  };
}

function isFrontier(value: JsonValue): value is string {
  return typeof value === "string" && isEventId(value);
}

/** Ignores events without a stream: `prepareEvents()` reports them. */
function checkTargets(events: JsonValue[], stream: string): void {
  const index = events.findIndex((event) =>
    isJsonObject(event) && typeof event.stream === "string" && event.stream !== stream
  );
  if (index >= 0) {
    throw batchError(`events[${index}] targets a different stream than stream_precondition`);
  }
}

function prepareEvents(submitted: JsonValue[]): PreparedEvent[] {
  const events: PreparedEvent[] = [];
  const errors: EventFault[] = [];
  for (let index = 0; index < submitted.length; index++) {
    const event = prepareEvent(submitted[index]!);
    if (typeof event === "string") errors.push({ index, code: "invalid_event", message: event });
    else events.push(event);
  }
  if (errors.length === 0) return events;
  throw new ApiError(
    "invalid_events",
    `${errors.length} of ${submitted.length} events are invalid; nothing was written`,
    { errors },
  );
}

function batchError(message: string): ApiError {
  return new ApiError("invalid_batch", message);
}
