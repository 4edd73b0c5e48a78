/**
 * Parses and validates the body of an ingest request. Checks run in this order, and the first that
 * fails is reported: JSON, batch members, event count, batch rules, events, lineage marker.
 */
import { Buffer } from "node:buffer";
import { BATCH_EVENTS_MAX, PAYLOAD_DEPTH_MAX } from "../limits.ts";
import { ApiError, type EventFault } from "./api_error.ts";
import { encodeBatch } from "./batch_encoder.ts";
import { type PayloadCopies, readFastBatch } from "./batch_fast_path.ts";
import { memberError, parseBody, requestError } from "./body.ts";
import { ByteWriter } from "./byte_writer.ts";
import { isEventId } from "./event_id.ts";
import { CanonicalCopy, NOT_TAKEN } from "./json/canonical_copy.ts";
import {
  isJsonObject,
  type JsonError,
  type JsonObject,
  type JsonValue,
  type ValueTaker,
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
  const copies: PayloadCopies = new Map();
  return readFastBatch(body, copies) ?? encodeBatch(checkBatch(body, copies));
}

/**
 * Checks a batch on the slow path, which builds JSON values. Throws like `prepareBatch()`.
 * @param copies payloads that the fast path has copied.
 */
export function checkBatch(body: Uint8Array, copies: PayloadCopies = new Map()): CheckedBatch {
  const payloads: string[] = [];
  const members = parseBody(body, BATCH_MEMBERS, eventErrors, payloadTaker(body, copies, payloads));
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
  const prepared = prepareEvents(events, payloads);
  return {
    source: ownText(source),
    batchId: ownText(batchId),
    events: prepared,
    precondition: streamPrecondition,
    lineage: lineageMarker(source, prepared) ?? undefined,
  };
}

/**
 * Copies valid payloads in canonical form to `payloads`, by the index of the event. Building the
 * values of a large one would take seconds.
 */
function payloadTaker(
  body: Uint8Array,
  copies: PayloadCopies,
  payloads: string[],
): ValueTaker {
  // Copied first: the scratch memory of the fast path is used again.
  const known = new Map(
    [...copies].map(([at, { endByte, copy }]) => [at, { endByte, text: copy() }]),
  );
  const writer = new ByteWriter(body.length + 1);
  writer.append(body);
  writer.append(Uint8Array.of(0));
  const payload = new CanonicalCopy(writer, body.length);
  const copyAt = (startByte: number) => {
    const start = writer.size;
    const endByte = payload.copy(startByte, PAYLOAD_DEPTH_MAX);
    const text = writer.bytes.toString("utf8", start, writer.size);
    writer.size = start;
    return endByte === NOT_TAKEN ? null : { endByte, text };
  };
  let event = 0;
  return {
    wants(path) {
      event = Number(path[1]);
      return path.length === 3 && path[0] === "events" && path[2] === "payload";
    },
    at(startByte) {
      const taken = known.get(startByte) ?? copyAt(startByte);
      if (taken === null) return null;
      payloads[event] = taken.text;
      return { value: 0, chars: writer.bytes.toString("utf8", startByte, taken.endByte).length };
    },
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

function prepareEvents(submitted: JsonValue[], payloads: string[]): PreparedEvent[] {
  const events: PreparedEvent[] = [];
  const errors: EventFault[] = [];
  for (let index = 0; index < submitted.length; index++) {
    const event = prepareEvent(submitted[index]!, payloads[index]);
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
