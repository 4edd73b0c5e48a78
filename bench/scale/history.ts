/**
 * The contents of a log for the scale benchmark, derived from batch numbers, so that the response
 * to each request is known. The log begins with batches of one event, each in a stream that gets no
 * more events (an old stream). The bulk follows, spread evenly over 100 sources with 1,000 streams
 * each. Every event has a unique record key.
 */
import { Buffer } from "node:buffer";
import { typicalPayload } from "../support/requests.ts";

/** `batch`: batches of 1,000 events; `single`: of one; `tiny`: of one with a payload of a byte. */
export type Shape = "batch" | "single" | "tiny";
const SHAPES: readonly Shape[] = ["batch", "single", "tiny"];

export const PAGE_EVENTS = 1000;
export const OLD_STREAMS_MAX = 1000;
export const OLD_SOURCE = "old";
export const SOURCES = 100;
/** Streams per source. */
export const STREAMS = 1000;

/** Key numbers have ten digits, starting with 1, so that they are valid in JSON. */
const KEY_BASE = 1_000_000_000;
const KEY_PLACEHOLDER = "8888888888";
const NAME_DIGITS = 3;
const NAME_PLACEHOLDER = "777";
const BATCH_DIGITS = 10;
const BATCH_PLACEHOLDER = "9999999999";
const HEAD_END = "\r\n\r\n";

/** @throws {Error} if no shape has that name. */
export function shapeNamed(text: string): Shape {
  const shape = SHAPES.find((name) => name === text);
  if (shape === undefined) throw new Error(`--shape must be one of ${SHAPES.join(", ")}`);
  return shape;
}

export function batchEventsOf(shape: Shape): number {
  return shape === "batch" ? 1000 : 1;
}

/** Returns the number of distinct streams in a log with this many events in its bulk. */
export function streamsOf(oldStreams: number, bulkEvents: number): number {
  return oldStreams + Math.min(bulkEvents, SOURCES * STREAMS);
}

export function sourceName(number: number): string {
  return `source-${digits(number, NAME_DIGITS)}`;
}

export function streamName(number: number): string {
  return `stream-${digits(number, NAME_DIGITS)}`;
}

export function oldStreamName(number: number): string {
  return `old-${number}`;
}

export interface SingleEvent {
  batchId: string;
  source: string;
  stream: string;
  /** Last event in the stream, for a precondition; undefined for none. */
  expectedFrontier?: string | null;
}

/** Builds a batch of one event. */
export function singleBatch(event: SingleEvent): Buffer {
  const { batchId, source, stream, expectedFrontier: expected_frontier } = event;
  return postRequest(JSON.stringify({
    batch_id: batchId,
    source,
    events: [eventOf(stream, batchId, typicalPayload(KEY_BASE))],
    ...expected_frontier === undefined
      ? {}
      : { stream_precondition: { stream, expected_frontier } },
  }));
}

/** Builds the only batch in an old stream. */
export function oldBatch(number: number): Buffer {
  const stream = oldStreamName(number);
  return singleBatch({ batchId: stream, source: OLD_SOURCE, stream });
}

/** Builds a `GET /v1/events` for the bulk event with the given number. */
export function bulkKeyRequest(event: number): Buffer {
  return getRequest(`/v1/events?record_key=${keyName(String(KEY_BASE + event))}`);
}

/** Returns the `source/stream` in the middle of a source. */
export function streamCursor(source: number): string {
  return `${sourceName(source)}/${streamName(STREAMS / 2)}`;
}

/** Builds a `GET /v1/streams` for a page of 100. Each extra parameter starts with `&`. */
export function streamsRequest(parameters: string): Buffer {
  return getRequest(`/v1/streams?limit=100${parameters}`);
}

function getRequest(target: string): Buffer {
  return Buffer.from(`GET ${target} HTTP/1.1\r\nHost: bench\r\n\r\n`);
}

/**
 * Builds the batches in the bulk. They share a buffer, so a batch must be sent before the next one
 * is built.
 */
export class BulkBatches {
  readonly #events: number;
  readonly #bytes: Buffer;
  readonly #batchAt: number[];
  readonly #sourceAt: number;
  readonly #streamsAt: number[];
  readonly #keysAt: number[];
  readonly #bodyAt: number;

  /** @param events events per batch. */
  constructor(events: number, isTiny = false) {
    // An event contains its key in `record_key`, and in a typical payload's id, name and email.
    const keys = isTiny ? 1 : 4;
    const payload = isTiny ? 1 : typicalPayload(Number(KEY_PLACEHOLDER));
    this.#events = events;
    this.#bytes = postRequest(JSON.stringify({
      batch_id: `bulk-${BATCH_PLACEHOLDER}`,
      source: `source-${NAME_PLACEHOLDER}`,
      events: Array.from(
        { length: events },
        () => eventOf(`stream-${NAME_PLACEHOLDER}`, keyName(KEY_PLACEHOLDER), payload),
      ),
    }));
    this.#batchAt = placesOf(this.#bytes, BATCH_PLACEHOLDER, 1);
    const [sourceAt, ...streamsAt] = placesOf(this.#bytes, NAME_PLACEHOLDER, events + 1);
    this.#sourceAt = sourceAt!;
    this.#streamsAt = streamsAt;
    this.#keysAt = placesOf(this.#bytes, KEY_PLACEHOLDER, events * keys);
    this.#bodyAt = bodyStart(this.#bytes);
  }

  static of(shape: Shape): BulkBatches {
    return new BulkBatches(batchEventsOf(shape), shape === "tiny");
  }

  /** Builds the batch with the given number, counted from 0. */
  request(number: number): Buffer {
    const bytes = this.#bytes;
    bytes.write(digits(number, BATCH_DIGITS), this.#batchAt[0]!, "latin1");
    bytes.write(digits(number % SOURCES, NAME_DIGITS), this.#sourceAt, "latin1");
    const round = Math.floor(number / SOURCES);
    const keys = this.#keysAt.length / this.#events;
    for (let event = 0; event < this.#events; event++) {
      const stream = (round * this.#events + event) % STREAMS;
      bytes.write(digits(stream, NAME_DIGITS), this.#streamsAt[event]!, "latin1");
      const key = String(KEY_BASE + number * this.#events + event);
      for (let place = event * keys; place < (event + 1) * keys; place++) {
        bytes.write(key, this.#keysAt[place]!, "latin1");
      }
    }
    return bytes;
  }

  /** Builds the body of that batch. */
  body(number: number): Buffer {
    return this.request(number).subarray(this.#bodyAt);
  }
}

/** Returns the body of a request. */
export function bodyOf(request: Buffer): Buffer {
  return request.subarray(bodyStart(request));
}

function bodyStart(request: Buffer): number {
  return request.indexOf(HEAD_END) + HEAD_END.length;
}

function keyName(key: string): string {
  return `customer-${key}`;
}

function eventOf(stream: string, recordKey: string, payload: unknown): unknown {
  const occurred_at = "2026-01-31T12:34:56.789Z";
  return { stream, record_key: recordKey, kind: "upserted", occurred_at, payload };
}

function postRequest(body: string): Buffer {
  return Buffer.from(
    "POST /v1/events HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n" +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function digits(number: number, count: number): string {
  return String(number).padStart(count, "0");
}

/** @throws {Error} if the text does not occur exactly `count` times. */
function placesOf(bytes: Buffer, text: string, count: number): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) {
    places.push(at);
  }
  if (places.length !== count) {
    throw new Error(`${text} occurs ${places.length} times, expected ${count}`);
  }
  return places;
}
