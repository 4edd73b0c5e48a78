/**
 * The contents of a log for the scale benchmark, derived from batch numbers, so that the response
 * to each request is known. The log begins with the only event of an old stream. The bulk follows,
 * spread evenly over 100 sources with 1,000 streams each. Every event has a unique record key.
 */
import type { Buffer } from "node:buffer";
import { customerEvent, digits, getRequest, typicalPayload } from "../support/requests.ts";

/**
 * `batch`: batches of 1,000 events; `single`: of one; `tiny`: of one with a payload of a byte;
 * `fabricated`: batches of one, nearly all of them in segments without rows.
 */
export const SHAPES = ["batch", "single", "tiny", "fabricated"] as const;
export type Shape = typeof SHAPES[number];

export const OLD_STREAM = { source: "old", stream: "old" };
export const SOURCES = 100;
/** Streams per source. */
export const STREAMS = 1000;

const NAME_DIGITS = 3;

export function batchEventsOf(shape: Shape): number {
  return shape === "batch" ? 1000 : 1;
}

export interface SingleEvent {
  batchId: string;
  source: string;
  stream: string;
  /** Last event in the stream, for a precondition; undefined for none. */
  expectedFrontier?: string;
}

/** Builds a batch of one event. */
export function singleBatch({ batchId, source, stream, expectedFrontier }: SingleEvent): object {
  const stream_precondition = { stream, expected_frontier: expectedFrontier };
  return {
    batch_id: batchId,
    source,
    events: [customerEvent(stream, batchId, typicalPayload(1))],
    ...(expectedFrontier !== undefined && { stream_precondition }),
  };
}

/** Builds the batch with the given number. Those after the bulk have an `idPrefix` of their own. */
export function bulkBatch(shape: Shape, number: number, idPrefix = "bulk"): object {
  const count = batchEventsOf(shape);
  const round = Math.floor(number / SOURCES);
  const events = Array.from({ length: count }, (_, place) => {
    const key = number * count + place;
    const stream = digits((round * count + place) % STREAMS, NAME_DIGITS);
    return customerEvent(`stream-${stream}`, key, shape === "tiny" ? 1 : typicalPayload(key));
  });
  const source = `source-${digits(number % SOURCES, NAME_DIGITS)}`;
  return { batch_id: `${idPrefix}-${number}`, source, events };
}

/** Returns the `source/stream` in the middle of a source. */
export function streamCursor(source: number): string {
  return `source-${digits(source, NAME_DIGITS)}/stream-${STREAMS / 2}`;
}

/** Builds a `GET /v1/streams` for a page of 100. Each extra parameter starts with `&`. */
export function streamsRequest(parameters: string): Buffer {
  return getRequest(`/v1/streams?limit=100${parameters}`);
}
