/**
 * Finds what is wrong with the body of an ingest request. Checks run in this order, and the first
 * that fails is reported: JSON, batch members, event count, batch rules, events.
 */
import { BATCH_EVENTS_MAX, PAYLOAD_DEPTH_MAX } from "../limits.ts";
import { ApiError, type EventFault } from "./api_error.ts";
import { memberError, parseBody, requestError } from "./body.ts";
import { ByteWriter } from "./byte_writer.ts";
import { isEventId } from "./event_id.ts";
import { CanonicalCopy } from "./json/canonical_copy.ts";
import {
  isJsonObject,
  type JsonError,
  type JsonObject,
  type JsonValue,
  quoteShort,
  SKIPPED,
  type ValueSkipper,
} from "./json/strict_json.ts";
import { batchIdFault, kindFault, nameFault, recordKeyFault, sourceFault } from "./names.ts";
import { occurredAtFault } from "./timestamp.ts";

/**
 * Throws the first fault of a batch. Builds the values outside payloads.
 * @throws {ApiError} `invalid_events` has every invalid event in `errors`.
 */
export function throwFault(body: Uint8Array): void {
  const members = parseBody(body, BATCH_MEMBERS, eventErrors, payloadSkipper(body));
  const { v = 1, batch_id: batchId, source, events, stream_precondition: precondition } = members;
  if (typeof batchId !== "string") throw memberError("batch_id", batchId, "a string");
  if (typeof source !== "string") throw memberError("source", source, "a string");
  if (!Array.isArray(events)) throw memberError("events", events, "an array");
  if (precondition !== undefined && !isJsonObject(precondition)) {
    throw requestError("stream_precondition must be an object");
  }
  if (events.length === 0) throw batchError("events must not be empty");
  if (events.length > BATCH_EVENTS_MAX) {
    const message = `batch has ${events.length} events, more than ${BATCH_EVENTS_MAX}; split it`;
    throw new ApiError("body_too_large", message);
  }
  if (v !== 1) throw batchError("v must be 1");
  refuseFault("batch_id", batchIdFault(batchId));
  refuseFault("source", sourceFault(source));
  if (precondition !== undefined) checkPrecondition(precondition, events);
  checkEvents(events);
}

/** Skips valid payloads: building the values of a large one would take seconds. */
function payloadSkipper(body: Uint8Array): ValueSkipper {
  const writer = new ByteWriter(body.length + 1);
  writer.append(body);
  writer.append(Uint8Array.of(0));
  const bodyEnd = writer.size;
  const payload = new CanonicalCopy(writer, body.length);
  return (path, start) => {
    if (path.length !== 3 || path[0] !== "events" || path[2] !== "payload") return 0;
    writer.size = bodyEnd;
    return Math.max(0, payload.copy(start, PAYLOAD_DEPTH_MAX));
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

function checkPrecondition(precondition: JsonObject, events: JsonValue[]): void {
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
  // Events without a stream are reported later.
  const index = events.findIndex((event) =>
    isJsonObject(event) && typeof event.stream === "string" && event.stream !== stream
  );
  if (index >= 0) {
    throw batchError(`events[${index}] targets a different stream than stream_precondition`);
  }
}

function checkEvents(submitted: JsonValue[]): void {
  const errors: EventFault[] = [];
  for (const [index, event] of submitted.entries()) {
    const message = eventFault(event);
    if (message !== null) errors.push({ index, code: "invalid_event", message });
  }
  if (errors.length === 0) return;
  throw new ApiError(
    "invalid_events",
    `${errors.length} of ${submitted.length} events are invalid; nothing was written`,
    { errors },
  );
}

function batchError(message: string): ApiError {
  return new ApiError("invalid_batch", message);
}

const REQUIRED_MEMBERS = ["stream", "record_key", "kind", "payload"];
const EVENT_MEMBERS = [...REQUIRED_MEMBERS, "occurred_at"];

const RULES = Object.entries({
  stream: nameFault,
  record_key: recordKeyFault,
  kind: kindFault,
  occurred_at: occurredAtFault,
});

/** Returns a message about the first rule that an event violates; null if it is valid. */
function eventFault(event: JsonValue): string | null {
  if (!isJsonObject(event)) return "event must be an object";
  for (const name in event) {
    if (!EVENT_MEMBERS.includes(name)) return `event has an unknown member ${quoteShort(name)}`;
    if (name !== "payload" && typeof event[name] !== "string") return `${name} must be a string`;
  }
  const missing = REQUIRED_MEMBERS.find((name) => !Object.hasOwn(event, name));
  if (missing !== undefined) return `missing member ${missing}`;
  for (const [name, faultOf] of RULES) {
    const text = event[name];
    const fault = typeof text === "string" ? faultOf(text) : null;
    if (fault !== null) return `${name} ${fault}`;
  }
  const isTooDeep = event.payload !== SKIPPED;
  return isTooDeep ? `payload is nested more than ${PAYLOAD_DEPTH_MAX} levels deep` : null;
}
