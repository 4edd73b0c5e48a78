/** Valid requests of every route, about one source after the other, for the fuzz test to spoil. */
import type { Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import { NO_EVENT_ID } from "../../contract/support/api.ts";
import {
  lineageMarker,
  type SubmittedBatch,
  type SubmittedEvent,
} from "../../support/submitted.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { type FuzzRequest, get, post } from "./fuzz_request.ts";

const STREAMS = ["orders", "items", "0.log_-"];
const RETIRE = "/v1/sources/retire";

export class FuzzSeeds {
  readonly #random: SeededRandom;
  readonly #name: string;
  #sources = 0;
  #batches = 0;
  #sent: SubmittedBatch[] = [];
  /** Last event that a receipt has named. */
  #lastEventId = NO_EVENT_ID;
  #retirement: RetirementReceipt | null = null;

  /** @param name begins the names of the sources, which nobody else uses. */
  constructor(random: SeededRandom, name: string) {
    this.#random = random;
    this.#name = name;
  }

  get source(): string {
    return `${this.#name}-${this.#sources}`;
  }

  /** An id that no batch has had. */
  newBatchId(): string {
    return `batch ${this.#batches++}`;
  }

  /** Leaves the source: after some time it is retired, or full of gaps. */
  leaveSource(): void {
    this.#sources++;
    this.#sent = [];
    this.#retirement = null;
  }

  /** Takes note of what a receipt says. */
  learn(receipt: Receipt | RetirementReceipt): void {
    if ("retirement_event_id" in receipt) this.#retirement = receipt;
    else this.#lastEventId = receipt.last_event_id;
  }

  next(): FuzzRequest {
    if (this.#retirement !== null && this.#random.chance(0.2)) return this.#successor();
    return this.#random.pick(this.#choices)();
  }

  readonly #choices: readonly (() => FuzzRequest)[] = [
    ...Array<() => FuzzRequest>(8).fill(() => this.#append(this.#batch())),
    () => this.#append(this.#before()),
    () => this.#append({ ...this.#before(), events: [this.#event(), this.#event()] }),
    () => this.#conditioned(),
    () => get(`/v1/events?limit=10000&source=${this.source}&after=${this.#lastEventId}`),
    () => get(`/v1/events?source=${this.source}&limit=${1 + this.#random.below(5)}`),
    () => get(`/v1/streams?source=${this.source}`),
    () => get(`/v1/events?follow=true&source=${this.source}&after=${this.#lastEventId}`),
    () => get(this.#random.pick(["/v1/events?limit=1", "/v1/streams?limit=1"]), "HEAD"),
    () => post(RETIRE, { v: 1, source: this.source }),
    () => post(RETIRE, { source: `${this.source}-none` }),
  ];

  #append(batch: SubmittedBatch): FuzzRequest {
    this.#sent.push(batch);
    return post("/v1/events", batch);
  }

  #before(): SubmittedBatch {
    return this.#sent.length === 0 ? this.#batch() : this.#random.pick(this.#sent);
  }

  #batch(events = Array.from({ length: 1 + this.#random.below(4) }, () => this.#event())) {
    return { batch_id: this.newBatchId(), source: this.source, events };
  }

  #event(stream: string = this.#random.pick(STREAMS)): SubmittedEvent {
    const random = this.#random;
    return {
      stream,
      record_key: random.text(10) || "key",
      kind: random.pick(["upserted", "deleted", "other kind"]),
      ...(random.chance(0.2) && { occurred_at: "2026-01-31T23:59:59.123456789Z" }),
      payload: random.pick([null, 1.5e-7, random.text(100), { b: [1, { a: "é" }], a: {} }, []]),
    };
  }

  #conditioned(): FuzzRequest {
    const stream = this.#random.pick(STREAMS);
    const expected_frontier = this.#random.pick([null, this.#lastEventId]);
    const batch = this.#batch([this.#event(stream)]);
    return this.#append({ ...batch, stream_precondition: { stream, expected_frontier } });
  }

  /** The first batch of a source that goes on where this one ends. */
  #successor(): FuzzRequest {
    const { source, final_frontier } = this.#retirement!;
    this.leaveSource();
    return this.#append(this.#batch([lineageMarker(source, final_frontier), this.#event()]));
  }
}
