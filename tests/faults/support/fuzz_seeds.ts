/**
 * Valid requests of every route on one source after the other, each with what its answer must be.
 * The seeds of one client depend on no other client, so every answer is known exactly.
 */
import assert from "node:assert/strict";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";
import type { SubmittedBatch, SubmittedEvent } from "../../support/submitted.ts";
import type { RawResponse } from "../../support/raw_response.ts";
import { type FuzzRequest, get, post } from "./fuzz_request.ts";

export interface Seed {
  request: FuzzRequest;
  /**
   * Checks the answer, and learns from it what the next seeds need.
   * @throws {AssertionError} when it is another one.
   */
  check(answer: RawResponse): void;
}

interface CommittedBatch {
  batch: SubmittedBatch;
  receipt: Receipt;
}

const STREAMS = ["orders", "items", "0.log_-"];
const NO_EVENT_ID = "00000000-0000-7000-8000-000000000000";
const RETIRE = "/v1/sources/retire";

export class FuzzSeeds {
  readonly #random: SeededRandom;
  readonly #name: string;
  #sources = 0;
  #batches = 0;
  #committed: CommittedBatch[] = [];
  /** Last event of each stream of the source. */
  #frontiers = new Map<string, string>();
  /** Of the source. */
  #events = 0;
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

  /** The next request. It may depend on the answers to those before. */
  next(): Seed {
    if (this.#retirement !== null) return this.#afterRetirement(this.#retirement);
    if (this.#committed.length === 0) return this.#append();
    return this.#random.pick(this.#choices)();
  }

  /** Leaves the source, as when its state is not known any more. */
  leaveSource(): void {
    this.#sources++;
    this.#committed = [];
    this.#frontiers = new Map();
    this.#events = 0;
    this.#retirement = null;
  }

  readonly #choices: readonly (() => Seed)[] = [
    ...Array<() => Seed>(8).fill(() => this.#append()),
    ...[() => this.#retry(), () => this.#conflict(), () => this.#precondition()],
    ...[() => this.#failedPrecondition(), () => this.#replay(), () => this.#replay()],
    ...[() => this.#replayPage(), () => this.#streams(), () => this.#follow(), () => this.#head()],
    ...[() => this.#retire(), () => this.#unknownSource()],
  ];

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

  #batch(members: Partial<SubmittedBatch> = {}): SubmittedBatch {
    const events = Array.from({ length: 1 + this.#random.below(4) }, () => this.#event());
    return { batch_id: this.newBatchId(), source: this.source, events, ...members };
  }

  #append(batch: SubmittedBatch = this.#batch()): Seed {
    return {
      request: post("/v1/events", batch),
      check: (answer) => this.#learn(batch, okBody(answer) as Receipt),
    };
  }

  #learn(batch: SubmittedBatch, receipt: Receipt): void {
    assert.equal(receipt.status, "committed");
    assert.equal(receipt.events, batch.events.length);
    const last = this.#committed.at(-1)?.receipt.last_event_id ?? "";
    assert.ok(receipt.first_event_id > last, "ids increase");
    this.#committed.push({ batch, receipt });
    this.#events += receipt.events;
    for (const { stream } of batch.events) this.#frontiers.delete(stream);
    const lastStream = batch.events.at(-1)!.stream;
    this.#frontiers.set(lastStream, receipt.last_event_id);
  }

  #retry(): Seed {
    const { batch, receipt } = this.#random.pick(this.#committed);
    const stream_precondition = { stream: batch.events[0]!.stream, expected_frontier: NO_EVENT_ID };
    const isOneStream = batch.events.every(({ stream }) => stream === stream_precondition.stream);
    return {
      request: post("/v1/events", isOneStream ? { ...batch, stream_precondition } : batch),
      check: (answer) => assert.deepEqual(okBody(answer), { ...receipt, status: "duplicate" }),
    };
  }

  #conflict(): Seed {
    const { batch } = this.#random.pick(this.#committed);
    const events = [...batch.events, this.#event(batch.stream_precondition?.stream)];
    return {
      request: post("/v1/events", { ...batch, events }),
      check: (answer) => assertError(answer, 409, "batch_id_conflict"),
    };
  }

  #precondition(): Seed {
    const known = [...this.#frontiers];
    const [stream, expected_frontier] = this.#random.pick(known);
    const events = [this.#event(stream), this.#event(stream)];
    return this.#append(
      this.#batch({ events, stream_precondition: { stream, expected_frontier } }),
    );
  }

  #failedPrecondition(): Seed {
    const [stream] = this.#random.pick([...this.#frontiers]);
    const expected_frontier = this.#random.pick([null, NO_EVENT_ID]);
    const events = [this.#event(stream)];
    const batch = this.#batch({ events, stream_precondition: { stream, expected_frontier } });
    return {
      request: post("/v1/events", batch),
      check: (answer) => assertError(answer, 409, "stream_frontier_conflict"),
    };
  }

  /** Everything after a batch. */
  #replay(): Seed {
    const at = this.#random.below(this.#committed.length);
    const after = this.#committed[at]!.receipt.last_event_id;
    const later = this.#committed.slice(at + 1);
    return {
      request: get(`/v1/events?limit=10000&source=${this.source}&after=${after}`),
      check: (answer) =>
        assertEvents((okBody(answer) as { events: CommittedEvent[] }).events, later),
    };
  }

  #replayPage(): Seed {
    const limit = 1 + this.#random.below(5);
    const count = Math.min(limit, this.#events);
    return {
      request: get(`/v1/events?source=${this.source}&limit=${limit}`),
      check: (answer) => {
        const { events } = okBody(answer) as { events: CommittedEvent[] };
        assert.equal(events.length, count);
        assert.equal(events[0]!.event_id, this.#committed[0]!.receipt.first_event_id);
      },
    };
  }

  #streams(): Seed {
    const expected = { ids: new Map(this.#frontiers), events: this.#events };
    return {
      request: get(`/v1/streams?source=${this.source}`),
      check: (answer) => {
        const { streams } = okBody(answer) as {
          streams: { stream: string; frontier_event_id: string; event_count: number }[];
        };
        const ids = new Map(streams.map((row) => [row.stream, row.frontier_event_id]));
        for (const [stream, id] of expected.ids) assert.equal(ids.get(stream), id);
        const counts = streams.map(({ event_count }) => event_count);
        assert.equal(counts.reduce((sum, count) => sum + count, 0), expected.events);
      },
    };
  }

  /** The answer is what has come when it has caught up. */
  #follow(): Seed {
    const at = this.#random.below(this.#committed.length);
    const after = this.#committed[at]!.receipt.last_event_id;
    const later = this.#committed.slice(at + 1);
    return {
      request: get(`/v1/events?follow=true&source=${this.source}&after=${after}`),
      check: ({ status, body }) => {
        assert.equal(status, 200);
        const records = body.split("\n").slice(0, -1).map((line) => JSON.parse(line));
        assert.equal(records.at(-1)?.type, "caught_up");
        assertEvents(records.slice(0, -1).flatMap(({ events }) => events), later);
      },
    };
  }

  #head(): Seed {
    const target = this.#random.pick(["/v1/events?limit=1", "/v1/streams", "/v1/streams?limit=1"]);
    return {
      request: get(target, "HEAD"),
      check: ({ status, headers, body }) => {
        assert.equal(status, 200);
        assert.equal(headers["content-type"], "application/json");
        assert.equal(body.length, 0);
      },
    };
  }

  #retire(): Seed {
    return {
      request: post(RETIRE, { v: 1, source: this.source }),
      check: (answer) => {
        const receipt = okBody(answer) as RetirementReceipt;
        assert.equal(receipt.status, "retired");
        assert.equal(receipt.final_frontier, this.#committed.at(-1)!.receipt.last_event_id);
        this.#retirement = receipt;
      },
    };
  }

  #unknownSource(): Seed {
    return {
      request: post(RETIRE, { source: `${this.source}-none` }),
      check: (answer) => assertError(answer, 404, "source_not_found"),
    };
  }

  /** A few more requests to a retired source, then the first to its successor. */
  #afterRetirement(retirement: RetirementReceipt): Seed {
    const again = () => ({
      request: post(RETIRE, { source: this.source }),
      check: (answer: RawResponse) =>
        assert.deepEqual(okBody(answer), { ...retirement, status: "already_retired" }),
    });
    const append = () => ({
      request: post("/v1/events", this.#batch()),
      check: (answer: RawResponse) => assertError(answer, 409, "source_retired"),
    });
    const choices = [again, append, () => this.#retry(), () => this.#succeed(retirement)];
    return this.#random.pick(choices)();
  }

  #succeed({ source, final_frontier }: RetirementReceipt): Seed {
    this.leaveSource();
    const marker = {
      stream: "service.source_lineage",
      record_key: source,
      kind: "source_succeeded",
      payload: { v: 1, predecessor_source: source, predecessor_final_frontier: final_frontier },
    };
    return this.#append(this.#batch({ events: [marker, this.#event()] }));
  }
}

function okBody({ status, body }: RawResponse): unknown {
  assert.equal(status, 200, body);
  return JSON.parse(body);
}

function assertError({ status, body }: RawResponse, expected: number, code: string): void {
  assert.equal(status, expected, body);
  assert.equal(JSON.parse(body).error, code);
}

/** The events are those of the batches. */
function assertEvents(events: CommittedEvent[], batches: CommittedBatch[]): void {
  const submitted = batches.flatMap(({ batch }) => batch.events);
  const parts = (all: readonly SubmittedEvent[]) =>
    all.map(({ stream, record_key, kind, payload }) => [stream, record_key, kind, payload]);
  assert.deepEqual(parts(events), parts(submitted));
  assert.equal(events.at(-1)?.event_id, batches.at(-1)?.receipt.last_event_id);
}
