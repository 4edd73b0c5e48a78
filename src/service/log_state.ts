/**
 * What the writer decides by: everything that is committed. What is not sealed is in memory, filled
 * from commit headers at a start and after each commit, so that it holds nothing that is not
 * durable. What is sealed is looked up in its segments.
 *
 * Invariant: at every moment a batch is in memory or in the sealed history. A look-up asks both in
 * one turn of the event loop, and a generation leaves memory in the turn in which its segments come
 * into the history: so no look-up misses it, however long it then reads.
 */
import { assert } from "../assert.ts";
import { SYSTEM_SOURCE } from "../event/system_names.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { SealedHistory } from "../log/segment/sealed_history.ts";
import { Generation, type Retirement, retirementBatchId } from "./generation.ts";

export class LogState {
  /** From the newest, that of the tail, to the oldest that is not sealed. */
  #generations: readonly Generation[] = [new Generation()];
  #sealed: SealedHistory | null = null;

  /** Takes in what is sealed, before any batch. */
  open(sealed: SealedHistory): void {
    this.#sealed = sealed;
  }

  /** Takes in a durable batch; they come in log order. */
  add(entry: BatchEntry): void {
    const newest = this.#generations[0]!;
    const retired = newest.add(entry);
    if (retired === null) return;
    const { finalFrontier } = newest.retirements.get(retired)!;
    const unsealed = this.#unsealedFrontier(retired) ?? finalFrontier;
    assert(unsealed === finalFrontier, "a source is retired at its last event");
  }

  /** The batches that are taken in from now on are a generation of their own. */
  rotated(): void {
    this.#generations = [new Generation(), ...this.#generations];
  }

  /** Drops the oldest generation: its batches are in the sealed history from this turn on. */
  dropSealed(): void {
    assert(this.#generations.length > 1, "the generation of the tail is never sealed");
    this.#generations = this.#generations.slice(0, -1);
  }

  /** Whether a batch that is not sealed has that identity. */
  hasUnsealed(source: string, batchId: string): boolean {
    return this.#findUnsealed(source, batchId) !== undefined;
  }

  /** The committed batch of that identity; null when there is none. */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    return this.#findUnsealed(source, batchId) ??
      await this.#sealed?.findBatch(source, batchId) ?? null;
  }

  /** Last event of a source; null when it has none. */
  async sourceFrontier(source: string): Promise<string | null> {
    return this.#unsealedFrontier(source) ?? await this.#sealed?.sourceFrontier(source) ?? null;
  }

  /** How a source was retired; null when it was not. */
  async findRetirement(source: string): Promise<Retirement | null> {
    for (const generation of this.#generations) {
      const known = generation.retirements.get(source);
      if (known !== undefined) return known;
      // A retirement follows the last event of its source.
      if (generation.hasSource(source)) return null;
    }
    // A source has no events after its retirement, so its last one tells the batch id of that.
    const finalFrontier = await this.sourceFrontier(source);
    if (finalFrontier === null) return null;
    const batchId = retirementBatchId(source, finalFrontier);
    const entry = await this.findBatch(SYSTEM_SOURCE, batchId);
    return entry === null ? null : { finalFrontier, retirementEventId: entry.first_event_id };
  }

  #findUnsealed(source: string, batchId: string): BatchEntry | undefined {
    for (const { batches } of this.#generations) {
      const entry = batches.get(source, batchId);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #unsealedFrontier(source: string): string | undefined {
    for (const generation of this.#generations) {
      const frontier = generation.frontierOf(source);
      if (frontier !== undefined) return frontier;
    }
    return undefined;
  }
}
