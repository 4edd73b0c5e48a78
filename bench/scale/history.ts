/**
 * The contents of a log for the scale benchmark, derived from batch numbers, so that the response
 * to each request is known. The log begins with batches of one event, each in a stream that gets no
 * more events (an old stream). The bulk follows, spread evenly over 100 sources with 1,000 streams
 * each. Every event has a unique record key.
 */
import type { Buffer } from "node:buffer";
import {
  customerEvent,
  digits,
  getRequest,
  keyRequest,
  RequestTemplate,
  typicalPayload,
} from "../support/requests.ts";

/** `batch`: batches of 1,000 events; `single`: of one; `tiny`: of one with a payload of a byte. */
export const SHAPES = ["batch", "single", "tiny"] as const;
export type Shape = typeof SHAPES[number];

export const PAGE_EVENTS = 1000;
export const OLD_STREAMS_MAX = 1000;
export const OLD_SOURCE = "old";
export const SOURCES = 100;
/** Streams per source. */
export const STREAMS = 1000;

/** Key numbers have ten digits, starting with 1, so that they are valid in JSON. */
const KEY_BASE = 1_000_000_000;
const NAME_DIGITS = 3;
const BATCH_DIGITS = 10;
/** The places of the placeholders in a batch. */
const [BATCH, SOURCE, STREAM, KEY] = [0, 1, 2, 3];
const KEY_PLACEHOLDER = 8888888888;
const PLACEHOLDERS = ["#".repeat(BATCH_DIGITS), "$$$", "%%%", `${KEY_PLACEHOLDER}`];

export function batchEventsOf(shape: Shape): number {
  return shape === "batch" ? 1000 : 1;
}

export function oldStreamName(number: number): string {
  return `old-${number}`;
}

export interface SingleEvent {
  batchId: string;
  source: string;
  stream: string;
  /** Last event in the stream, for a precondition; undefined for none. */
  expectedFrontier?: string | undefined;
}

/** Builds a batch of one event. */
export function singleBatch({ batchId, source, stream, expectedFrontier }: SingleEvent): object {
  const stream_precondition = { stream, expected_frontier: expectedFrontier };
  return {
    batch_id: batchId,
    source,
    events: [customerEvent(stream, batchId, typicalPayload(KEY_BASE))],
    ...(expectedFrontier !== undefined && { stream_precondition }),
  };
}

/** Builds the only batch in an old stream. */
export function oldBatch(number: number): object {
  const stream = oldStreamName(number);
  return singleBatch({ batchId: stream, source: OLD_SOURCE, stream });
}

/** Builds a `GET /v1/events` for the bulk event with the given number. */
export function bulkKeyRequest(event: number): Buffer {
  return keyRequest(KEY_BASE + event);
}

/** Returns the `source/stream` in the middle of a source. */
export function streamCursor(source: number): string {
  return `source-${digits(source, NAME_DIGITS)}/stream-${STREAMS / 2}`;
}

/** Builds a `GET /v1/streams` for a page of 100. Each extra parameter starts with `&`. */
export function streamsRequest(parameters: string): Buffer {
  return getRequest(`/v1/streams?limit=100${parameters}`);
}

/**
 * Builds the batches in the bulk. They share a buffer, so a batch must be sent before the next one
 * is built.
 */
export class BulkBatches {
  readonly #events: number;
  readonly #template: RequestTemplate;

  constructor(shape: Shape) {
    const [batch, source, stream, key] = PLACEHOLDERS;
    const payload = shape === "tiny" ? 1 : typicalPayload(KEY_PLACEHOLDER);
    const event = customerEvent(`stream-${stream}`, key!, payload);
    this.#events = batchEventsOf(shape);
    const events = Array.from({ length: this.#events }, () => event);
    const content = { batch_id: `bulk-${batch}`, source: `source-${source}`, events };
    this.#template = new RequestTemplate(content, PLACEHOLDERS);
  }

  /** Builds the batch with the given number, counted from 0. */
  request(number: number): Buffer {
    const template = this.#template;
    template.write(BATCH, digits(number, BATCH_DIGITS));
    template.write(SOURCE, digits(number % SOURCES, NAME_DIGITS));
    const round = Math.floor(number / SOURCES);
    // A typical payload contains the key, too.
    const keys = template.count(KEY) / this.#events;
    for (let event = 0; event < this.#events; event++) {
      const stream = (round * this.#events + event) % STREAMS;
      template.write(STREAM, digits(stream, NAME_DIGITS), event, event + 1);
      const key = String(KEY_BASE + number * this.#events + event);
      template.write(KEY, key, event * keys, (event + 1) * keys);
    }
    return template.bytes;
  }

  /** Builds the body of that batch. */
  body(number: number): Buffer {
    this.request(number);
    return this.#template.body;
  }
}
