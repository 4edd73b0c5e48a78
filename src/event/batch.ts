/**
 * Parses and validates the body of an ingest request. Checks run in this order, and the first that
 * fails is reported: JSON, batch members, event count, batch rules, events, lineage marker.
 */
import { Buffer } from "node:buffer";
import { BATCH_EVENTS_MAX } from "../limits.ts";
import { ApiError, type EventFault } from "./api_error.ts";
import { encodeBatch } from "./batch_encoder.ts";
import { readFastBatch } from "./batch_fast_path.ts";
import { memberError, parseBody, requestError } from "./body.ts";
import { isEventId } from "./event_id.ts";
import {
  isJsonObject,
  type JsonError,
  type JsonObject,
  type JsonValue,
} from "./json/strict_json.ts";
import { lineageMarker } from "./lineage.ts";
import { batchIdFault, nameFault, sourceFault } from "./names.ts";
import { prepareEvent } from "./submitted_event.ts";
import type { CheckedBatch, PreparedBatch, PreparedEvent, StreamPrecondition } from "./types.ts";

/**
 * Parses and validates a batch, then canonicalizes and hashes its payloads.
 * @throws {ApiError} `invalid_events` has every invalid event in `errors`.
 */
export function prepareBatch(body: Uint8Array): PreparedBatch {
  return readFastBatch(body) ?? encodeBatch(checkBatch(body));
}

/** Checks a batch on the slow path, which builds JSON values. Throws like `prepareBatch()`. */
export function checkBatch(body: Uint8Array): CheckedBatch {
  const members = parseBody(body, BATCH_MEMBERS, eventErrors);
  const { v = 1, batch_id: batchId, source, events, stream_precondition: precondition } = members;
  if (typeof batchId !== "string") throw memberError("batch_id", batchId, "a string");
  if (typeof source !== "string") throw memberError("source", source, "a string");
  if (!Array.isArray(events)) throw memberError("events", events, "an array");
  if (precondition !== undefined && !isJsonObject(precondition)) {
    throw requestError("stream_precondition must be an object");
  }
  checkEventCount(events.length);
  if (v !== 1) throw batchError("v must be 1");
  refuseFault("batch_id", batchIdFault(batchId));
  refuseFault("source", sourceFault(source));
  const streamPrecondition = precondition && readPrecondition(precondition, events);
  const prepared = prepareEvents(events);
  return {
    source: ownText(source),
    batchId: ownText(batchId),
    events: prepared,
    precondition: streamPrecondition,
    lineage: lineageMarker(source, prepared) ?? undefined,
  };
}

const BATCH_MEMBERS = new Set(["v", "batch_id", "source", "events", "stream_precondition"]);

/** Identifies the event that contains a JSON fault, if any. */
function eventErrors({ path, message }: JsonError): { errors?: EventFault[] } {
  const [member, index] = path;
  if (member !== "events" || typeof index !== "number") return {};
  return { errors: [{ index, code: "invalid_event", message }] };
}

function refuseFault(name: string, fault: string | null): void {
  if (fault !== null) throw batchError(`${name} ${fault}`);
}

function checkEventCount(count: number): void {
  if (count === 0) throw batchError("events must not be empty");
  if (count <= BATCH_EVENTS_MAX) return;
  throw new ApiError(
    "body_too_large",
    `batch has ${count} events, more than ${BATCH_EVENTS_MAX}; split it`,
  );
}

function readPrecondition(precondition: JsonObject, events: JsonValue[]): StreamPrecondition {
  const { stream, expected_frontier: expectedFrontier } = precondition;
  const isClosed = Object.keys(precondition).length === 2;
  if (!isClosed || typeof stream !== "string" || expectedFrontier === undefined) {
    throw batchError(
      "stream_precondition must have a stream (string) and an expected_frontier (event id or null)",
    );
  }
  refuseFault("stream_precondition.stream", nameFault(stream));
  if (expectedFrontier !== null && !isEventId(expectedFrontier)) {
    throw batchError("stream_precondition.expected_frontier must be an event id or null");
  }
  checkTargets(events, stream);
  return {
    stream: ownText(stream),
    expectedFrontier: expectedFrontier && ownText(expectedFrontier),
  };
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

/** Copies a well-formed substring, which would otherwise keep the whole body in memory. */
function ownText(text: string): string {
  return Buffer.from(text).toString();
}

function batchError(message: string): ApiError {
  return new ApiError("invalid_batch", message);
}
