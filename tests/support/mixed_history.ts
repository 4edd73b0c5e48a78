/**
 * A history that uses all features: sources, streams, retirement and lineage, preconditions,
 * Unicode, large payloads, batches of one event and of many, with and without `occurred_at`. It has
 * several parts, so that a log can be sealed in between.
 */
import assert from "node:assert/strict";
import { type Outcome, outcomeOf, statusOf } from "./outcome.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { lineageMarker, submit, type SubmittedBatch, type SubmittedEvent } from "./submitted.ts";

/** Code points outside the BMP, combining marks, controls, and characters that JSON escapes. */
const TEXTS = [
  "Zoë",
  "東京",
  "😀\u{1F9D1}\u200D\u{1F680}",
  "e\u0301",
  'a"b\\c\n\u0001\u2028',
  "ß".repeat(40),
];

function event(number: number, more: Partial<SubmittedEvent> = {}): SubmittedEvent {
  const text = TEXTS[number % TEXTS.length]!;
  return {
    stream: `s-${number % 3}`,
    record_key: `${text} ${number % 5}`,
    kind: number % 4 === 0 ? "deleted" : "upserted",
    ...(number % 2 === 0 &&
      { occurred_at: `2025-12-31T23:59:59.${"123456789".slice(number % 9)}Z` }),
    payload: { number, text, list: [1.5, -0, 1e21, null, true], nested: { [text]: { "": [] } } },
    ...more,
  };
}

function batch(source: string, batchId: string, events: SubmittedEvent[]): SubmittedBatch {
  return { source, batch_id: batchId, events };
}

function many(from: number, count: number, more?: Partial<SubmittedEvent>): SubmittedEvent[] {
  return Array.from({ length: count }, (_, place) => event(from + place, more));
}

/** A history that keeps everything submitted so far, for later comparison. */
export class MixedHistory {
  /** Every accepted batch and its response. */
  readonly committed: { batch: SubmittedBatch; outcome: Outcome }[] = [];
  readonly retirements: { source: string; outcome: Outcome }[] = [];

  get lastEventId(): string {
    return this.committed.at(-1)!.outcome.body.last_event_id as string;
  }

  /** The parts of the history, in order. Each can run on a different service. */
  readonly parts: readonly ((log: EventLogService) => Promise<void>)[] = [
    async (log) => {
      await this.#commit(log, batch("shop", "b/1", many(0, 7)));
      await this.#commit(log, batch("crm", "b/1", many(7, 1)));
      await this.#commit(log, batch("shop", "😀 2", many(8, 1)));
      await this.#commit(log, batch("old", "last", many(9, 4, { stream: "only" })));
      const large = "x".repeat(300_000) + "€".repeat(20_000);
      await this.#commit(log, batch("shop", "large", [event(13, { payload: large }), event(14)]));
    },
    async (log) => {
      await this.#commitRetirement(log, "old");
      const { batch: before, outcome } = this.committed[1]!;
      const stream = before.events[0]!.stream;
      const expected_frontier = outcome.body.last_event_id as string;
      const events = many(20, 2, { stream });
      const stream_precondition = { stream, expected_frontier };
      await this.#commit(log, { ...batch("crm", "b/2", events), stream_precondition });
      await this.#commit(log, batch("brief", "1", many(25, 3)));
    },
    async (log) => {
      const frontier = this.retirements[0]!.outcome.body.final_frontier as string;
      const marker = lineageMarker("old", frontier);
      await this.#commit(log, batch("new", "1", [marker, ...many(30, 2)]));
      await this.#commitRetirement(log, "brief");
      for (let number = 40; number < 60; number++) {
        await this.#commit(log, batch("shop", `b/${number}`, many(number, 1)));
      }
    },
    async (log) => {
      await this.#commit(log, batch("new", "2", many(60, 5)));
      await this.#commit(log, batch("crm", "b/3", many(65, 1, { payload: "東".repeat(100_000) })));
    },
  ];

  async #commit(log: EventLogService, batch: SubmittedBatch): Promise<void> {
    const outcome = await submit(log, batch);
    assert.equal(statusOf(outcome), "committed", JSON.stringify(outcome));
    this.committed.push({ batch, outcome });
  }

  async #commitRetirement(log: EventLogService, source: string): Promise<void> {
    const outcome = await outcomeOf(log.retire(source));
    assert.equal(statusOf(outcome), "retired", JSON.stringify(outcome));
    this.retirements.push({ source, outcome });
  }
}
