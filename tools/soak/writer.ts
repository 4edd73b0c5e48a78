/**
 * A connector that appends batches of all shapes to its own source. It resends some, abandons some,
 * sends invalid ones, and occasionally retires its source and continues as the successor.
 */
import type { Batch } from "../../src/client/event_log_client.ts";
import type { Receipt, RetirementReceipt } from "../../src/event/types.ts";
import { lineageMarker } from "../../tests/support/submitted.ts";
import { randomItem } from "../support/random.ts";
import { WRITER_BYTES_PER_SECOND, WRITER_PAUSE_MS_MAX } from "./bounds.ts";
import type { LedgerEntry } from "./ledger.ts";
import { type ClientLoad, giveUpAfter, pause, refusalOf } from "./load.ts";
import { claim } from "./violation.ts";
import { batchIdOf, GUARDED_STREAM, makeBatch, type Shape, STEPS } from "./workload.ts";

/** Maximum timeout of an abandoned request, in milliseconds. Some responses take longer. */
const ABORT_MS_MAX = 20;

export class Writer {
  readonly #load: ClientLoad;
  #generation = 0;
  #batches = 0;
  /** Frontier of the stream that only guarded batches use. */
  #guardedFrontier: string | null = null;
  /** Acknowledged batches from the current source, each of which can be rebuilt from its id. */
  #acknowledged: LedgerEntry[] = [];
  /** Size of the payloads sent since the last pause. */
  #sentBytes = 0;

  constructor(load: ClientLoad) {
    this.#load = load;
  }

  /** Runs until the load ends. @throws {Violation} or any other error that occurs. */
  async run(): Promise<void> {
    while (!this.#load.ending.aborted) {
      await this.#step();
      const paceMs = this.#sentBytes / WRITER_BYTES_PER_SECOND * 1000;
      this.#sentBytes = 0;
      await pause(this.#load, paceMs + this.#load.random() * WRITER_PAUSE_MS_MAX);
    }
  }

  #step(): Promise<void> {
    const step = randomItem(this.#load.random, this.#load.steps ?? STEPS);
    switch (step) {
      case "guarded":
        return this.#appendGuarded();
      case "misguarded":
        return this.#appendMisguarded();
      case "again":
        return this.#appendAgain();
      case "twin":
        return this.#append(this.#nextBatch("small"), 2);
      case "conflict":
        return this.#appendConflict();
      case "abort":
        return this.#appendAndGiveUp();
      case "succeed":
        return this.#succeed();
      default:
        return this.#append(this.#nextBatch(step));
    }
  }

  get #source(): string {
    return `${this.#load.name}-${this.#generation}`;
  }

  #nextBatch(shape: Shape): Batch {
    return makeBatch(this.#load.seed, this.#source, batchIdOf(this.#batches++, shape));
  }

  /** Sends a new batch, `count` times concurrently. It must be committed once. */
  async #append(batch: Batch, count = 1): Promise<void> {
    const entry = this.#load.ledger.submit(batch);
    await Promise.all(Array.from({ length: count }, () => this.#send(batch, entry)));
    this.#acknowledged.push(entry);
  }

  /** Sends a batch until there is a response, and records the receipt. */
  async #send(batch: Batch, entry: LedgerEntry): Promise<Receipt> {
    const { client, ledger, tally, failing } = this.#load;
    this.#sentBytes += entry.payloadBytes;
    const receipt = await client.append(batch, { signal: failing });
    const isNew = entry.receipt === null;
    ledger.acknowledge(entry, receipt);
    if (receipt.status === "duplicate") tally.add("duplicates");
    if (!isNew) return receipt;
    tally.add("batches");
    tally.add("events", entry.events);
    tally.add("payloadBytes", entry.payloadBytes);
    return receipt;
  }

  #guarded(expectedFrontier: string | null): Batch {
    const precondition = { stream: GUARDED_STREAM, expectedFrontier };
    return { ...this.#nextBatch("guarded"), precondition };
  }

  /** Appends a batch whose precondition holds, because no other client writes to the stream. */
  async #appendGuarded(): Promise<void> {
    await this.#append(this.#guarded(this.#guardedFrontier));
    this.#guardedFrontier = this.#acknowledged.at(-1)!.receipt!.last_event_id;
  }

  /** Sends a batch whose precondition names an event in another stream, or none. */
  async #appendMisguarded(): Promise<void> {
    const other = this.#load.ledger.acknowledged.at(-1)?.receipt?.first_event_id;
    const expectedFrontier = this.#guardedFrontier === null ? other : null;
    if (expectedFrontier === undefined) return;
    const error = await this.#refuse(this.#guarded(expectedFrontier), "stream_frontier_conflict");
    const { actual_frontier: actual } = error.body as { actual_frontier: string | null };
    const told = `${this.#source}: the frontier was reported as ${actual}`;
    claim(actual === this.#guardedFrontier, `${told}, not ${this.#guardedFrontier}`);
  }

  /** Sends a batch that must be rejected and leave nothing in the log. */
  async #refuse(batch: Batch, code: string) {
    const { client, tally, failing } = this.#load;
    const error = await refusalOf(client.append(batch, { signal: failing }), code);
    tally.add("refusals");
    return error;
  }

  #makeAgain(entry: LedgerEntry): Batch {
    return makeBatch(this.#load.seed, entry.source, entry.batchId);
  }

  /** Resends the same bytes, as after a lost response, even if the precondition no longer holds. */
  async #appendAgain(): Promise<void> {
    if (this.#acknowledged.length === 0) return;
    const entry = randomItem(this.#load.random, this.#acknowledged);
    const batch = this.#makeAgain(entry);
    if (entry.batchId.endsWith("guarded")) {
      batch.precondition = { stream: GUARDED_STREAM, expectedFrontier: null };
    }
    await this.#sendAgain(batch, entry);
  }

  async #sendAgain(batch: Batch, entry: LedgerEntry): Promise<void> {
    const { status } = await this.#send(batch, entry);
    claim(status === "duplicate", `${batch.source}/${batch.batchId} was committed twice`);
  }

  /** Sends different events under a committed batch id; they must be rejected. */
  async #appendConflict(): Promise<void> {
    if (this.#acknowledged.length === 0) return;
    const batch = this.#makeAgain(randomItem(this.#load.random, this.#acknowledged));
    const other = { stream: "orders", record_key: "conflict", kind: "upserted", payload: 0 };
    batch.events = [...batch.events, other].slice(-1000);
    await this.#refuse(batch, "batch_id_conflict");
  }

  /** Aborts a request before its response, then either retries it or leaves its outcome unknown. */
  async #appendAndGiveUp(): Promise<void> {
    const { client, ledger } = this.#load;
    const batch = this.#nextBatch(randomItem(this.#load.random, ["single", "bulk"]));
    const entry = ledger.submit(batch);
    await giveUpAfter(this.#load, this.#load.random() * ABORT_MS_MAX, async (signal) => {
      ledger.acknowledge(entry, await client.append(batch, { signal }));
    });
    if (this.#load.random() < 0.5) await this.#send(batch, entry);
  }

  /** Retires the source, checks the retirement, and continues as the successor. */
  async #succeed(): Promise<void> {
    if (this.#acknowledged.length === 0) return;
    const retired = this.#acknowledged;
    const { source, final_frontier, retirement_event_id } = await this.#retire();
    await this.#refuse(this.#nextBatch("small"), "source_retired");
    const entry = randomItem(this.#load.random, retired);
    await this.#sendAgain(this.#makeAgain(entry), entry);
    this.#generation += 1;
    this.#guardedFrontier = null;
    this.#acknowledged = [];
    const wrong = this.#firstBatch(source, retirement_event_id);
    await this.#refuse(wrong, "source_lineage_conflict");
    const batch = this.#firstBatch(source, final_frontier);
    await this.#send(batch, this.#load.ledger.submit(batch));
  }

  async #retire(): Promise<RetirementReceipt> {
    const { client, ledger, tally, failing } = this.#load;
    const receipt = await client.retire(this.#source, { signal: failing });
    ledger.retire(receipt);
    const again = await client.retire(this.#source, { signal: failing });
    claim(again.status === "already_retired", `${this.#source} was retired twice`);
    ledger.retire(again);
    tally.add("retirements");
    return receipt;
  }

  /** Returns the first batch from a successor, which cannot be rebuilt from its id. */
  #firstBatch(predecessor: string, frontier: string): Batch {
    const batch = this.#nextBatch("small");
    const marker = lineageMarker(predecessor, frontier);
    return { ...batch, batchId: `${batch.batchId}-lineage`, events: [marker, ...batch.events] };
  }
}
