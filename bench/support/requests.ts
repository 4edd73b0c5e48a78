/**
 * Requests as bytes. They are built once, and only parts of a fixed size are changed in place. The
 * typical event has a 300-byte payload, whose members are not in canonical order.
 */
import { Buffer } from "node:buffer";

const PAYLOAD_BYTES = 300;
/** Events in a full page, and in a batch that fills a log. */
export const PAGE_EVENTS = 1000;
export const BENCH_SOURCE = "bench";

/** Number of digits in the number in a batch id, enough for any run. */
const NUMBER_DIGITS = 12;
const NUMBER_PLACEHOLDER = "#".repeat(NUMBER_DIGITS);
export const ID_CHARS = 36;
const ID_PLACEHOLDER = "0".repeat(ID_CHARS);
const HEAD_END = "\r\n\r\n";

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

/** Returns an event of the customer `key`. */
export function customerEvent(stream: string, key: number | string, payload: unknown) {
  const occurred_at = "2026-01-31T12:34:56.789Z";
  return { stream, record_key: `customer-${key}`, kind: "upserted", occurred_at, payload };
}

/** Returns typical events with distinct keys. */
export function typicalEvents(count: number, firstKey = 0): { record_key: string }[] {
  return Array.from({ length: count }, (_, index) => {
    const key = firstKey + index;
    return customerEvent("customers", key, typicalPayload(key));
  });
}

export interface RepeatedBatch {
  /** Makes a client's batch ids unique. */
  idPrefix: string;
  source?: string;
  events: readonly object[];
  /** The stream of the precondition; undefined for none. */
  guarded?: string | undefined;
}

/** A `POST /v1/events` with a new batch id each time. */
export class BatchRequest {
  readonly #bytes: Buffer;
  readonly #numberAt: number;
  readonly #frontierAt: number;
  #number = 0;

  constructor({ idPrefix, source = BENCH_SOURCE, events, guarded }: RepeatedBatch) {
    const precondition = { stream: guarded, expected_frontier: ID_PLACEHOLDER };
    this.#bytes = postRequest({
      batch_id: `${idPrefix}-${NUMBER_PLACEHOLDER}`,
      source,
      ...(guarded !== undefined && { stream_precondition: precondition }),
      events,
    });
    this.#numberAt = this.#bytes.indexOf(NUMBER_PLACEHOLDER);
    this.#frontierAt = this.#bytes.indexOf(ID_PLACEHOLDER);
  }

  /**
   * Returns the next request. The buffer is reused, so send it before the next call.
   * @param frontier what a guarded batch expects.
   */
  next(frontier?: string): Buffer {
    this.#bytes.write(digits(this.#number++, NUMBER_DIGITS), this.#numberAt, "latin1");
    if (frontier !== undefined) this.#bytes.write(frontier, this.#frontierAt, "latin1");
    return this.#bytes;
  }
}

/** Builds a `POST /v1/events`. @param batch the batch, or its JSON. */
export function postRequest(batch: object | string, token?: string): Buffer {
  const body = typeof batch === "string" ? batch : JSON.stringify(batch);
  const head = postHead(`Content-Length: ${Buffer.byteLength(body)}`, token);
  return Buffer.from(head + body);
}

/** Builds the head of a `POST /v1/events`. @param framing the header that tells the body's end. */
export function postHead(framing: string, token?: string): string {
  const headers = `${authorization(token)}\r\nContent-Type: application/json\r\n${framing}`;
  return `POST /v1/events HTTP/1.1\r\nHost: bench${headers}${HEAD_END}`;
}

/** Builds a GET. */
export function getRequest(target: string, token?: string): Buffer {
  return Buffer.from(`GET ${target} HTTP/1.1\r\nHost: bench${authorization(token)}${HEAD_END}`);
}

function authorization(token: string | undefined): string {
  return token === undefined ? "" : `\r\nAuthorization: Bearer ${token}`;
}

/** Builds a reproducible `POST /v1/events` of `PAGE_EVENTS` events with distinct keys. */
export function keyedBatch(number: number): Buffer {
  const batch = { batch_id: `keyed-${number}`, source: BENCH_SOURCE };
  return postRequest({ ...batch, events: typicalEvents(PAGE_EVENTS, number * PAGE_EVENTS) });
}

/** Builds a `GET /v1/events` for the events with one key. */
export function keyRequest(key: number): Buffer {
  return getRequest(`/v1/events?record_key=customer-${key}`);
}

/** Builds a `GET /v1/events` for the page after an event; null for the beginning. */
export function pageRequest(after: string | null, limit = PAGE_EVENTS): Buffer {
  return getRequest(`/v1/events?limit=${limit}${after === null ? "" : `&after=${after}`}`);
}

/** Pads a number with zeros. */
export function digits(number: number, count: number): string {
  return String(number).padStart(count, "0");
}
