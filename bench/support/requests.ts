/**
 * Requests as bytes. They are built once, and only the batch id is changed in place. The typical
 * event has a 300-byte payload, whose members are not in canonical order.
 */
import { Buffer } from "node:buffer";

export const PAYLOAD_BYTES = 300;
export const BENCH_SOURCE = "bench";

/** Number of digits in the number in a batch id, enough for any run. */
const NUMBER_DIGITS = 12;

/** Returns a typical payload, with numbers, nesting and unsorted members. */
export function typicalPayload(key: number): Record<string, unknown> {
  const payload = {
    id: key,
    name: `Customer number ${key}`,
    email: `customer.${key}@example.invalid`,
    amount: 1249.5,
    active: true,
    tags: ["retail", "north", "priority"],
    address: { street: "Harbour Road 12", city: "Brückstadt", zip: "20457" },
    updated_by: null,
    note: "",
  };
  payload.note = "x".repeat(PAYLOAD_BYTES - Buffer.byteLength(JSON.stringify(payload)));
  return payload;
}

/** A `POST /v1/events` with a new batch id each time. */
export class BatchRequest {
  readonly #bytes: Buffer;
  readonly #numberAt: number;
  #number = 0;

  /**
   * @param idPrefix makes a client's ids unique.
   * @param events events per batch.
   * @param keyOf returns the record key of an event.
   */
  constructor(idPrefix: string, events: number, keyOf: (event: number) => string = keyName) {
    const placeholder = "0".repeat(NUMBER_DIGITS);
    this.#bytes = postRequest({
      batch_id: `${idPrefix}-${placeholder}`,
      source: BENCH_SOURCE,
      events: Array.from({ length: events }, (_, index) => ({
        stream: "customers",
        record_key: keyOf(index),
        kind: "upserted",
        occurred_at: "2026-01-31T12:34:56.789Z",
        payload: typicalPayload(index),
      })),
    });
    this.#numberAt = this.#bytes.indexOf(placeholder);
  }

  /** Returns the next request. The buffer is reused, so send it before the next call. */
  next(): Buffer {
    const digits = String(this.#number++).padStart(NUMBER_DIGITS, "0");
    this.#bytes.write(digits, this.#numberAt, "latin1");
    return this.#bytes;
  }
}

export interface StreamEvents {
  source: string;
  stream: string;
  /** Makes a client's ids unique; default: the stream. */
  idPrefix?: string;
  /** The expected frontier of the first request; undefined for no precondition. */
  frontier?: string | null;
  /** Default: a typical one. */
  payload?: unknown;
}

/** A `POST /v1/events` of one event for one stream, with a new batch id each time. */
export class StreamRequest {
  readonly #bytes: Buffer;
  readonly #numberAt: number;
  readonly #frontierAt: number;
  #number = 0;

  constructor({ source, stream, idPrefix = stream, frontier, payload }: StreamEvents) {
    const placeholder = "0".repeat(NUMBER_DIGITS);
    const condition = '"expected_frontier":';
    this.#bytes = postRequest({
      batch_id: `${idPrefix}-${placeholder}`,
      source,
      ...(frontier !== undefined &&
        { stream_precondition: { stream, expected_frontier: frontier } }),
      events: [{
        stream,
        record_key: "1",
        kind: "upserted",
        payload: payload ?? typicalPayload(1),
      }],
    });
    this.#numberAt = this.#bytes.indexOf(placeholder);
    this.#frontierAt = this.#bytes.indexOf(condition) + condition.length + 1;
  }

  /**
   * Returns the next request. The buffer is reused, so send it before the next call.
   * @param frontier the expected frontier, if the first request expected one.
   */
  next(frontier?: string): Buffer {
    const digits = String(this.#number++).padStart(NUMBER_DIGITS, "0");
    this.#bytes.write(digits, this.#numberAt, "latin1");
    if (frontier !== undefined) this.#bytes.write(frontier, this.#frontierAt, "latin1");
    return this.#bytes;
  }
}

/** Builds a `POST /v1/events`. */
export function postRequest(batch: unknown): Buffer {
  const body = JSON.stringify(batch);
  const head = "POST /v1/events HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n" +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

/** Builds a reproducible `POST /v1/events` whose events have distinct keys. */
export function keyedBatch(number: number, events: number): Buffer {
  const firstKey = number * events;
  return postRequest({
    batch_id: `keyed-${number}`,
    source: BENCH_SOURCE,
    events: Array.from({ length: events }, (_, index) => ({
      stream: "customers",
      record_key: keyName(firstKey + index),
      kind: "upserted",
      occurred_at: "2026-01-31T12:34:56.789Z",
      payload: typicalPayload(firstKey + index),
    })),
  });
}

function keyName(key: number): string {
  return `customer-${key}`;
}

/** Builds a `GET /v1/events` for the events with one key. */
export function keyRequest(key: number): Buffer {
  return eventsRequest(`record_key=${keyName(key)}`);
}

/** Builds a `GET /v1/events` with a query. */
export function eventsRequest(query: string): Buffer {
  return Buffer.from(`GET /v1/events?${query} HTTP/1.1\r\nHost: bench\r\n\r\n`);
}

/** Builds a `GET /v1/events` for the page after an event; null for the beginning. */
export function pageRequest(after: string | null, limit: number): Buffer {
  const from = after === null ? "" : `&after=${after}`;
  return eventsRequest(`limit=${limit}${from}`);
}

/** A `GET /v1/streams` whose response has no streams. */
export const NO_STREAMS_REQUEST: Buffer = Buffer.from(
  "GET /v1/streams?source=none HTTP/1.1\r\nHost: bench\r\n\r\n",
);
