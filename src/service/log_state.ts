/**
 * Everything committed, as decisions and stream listings need it. Unsealed batches are in memory,
 * filled from commit headers at startup and after each commit; sealed ones are looked up in their
 * segments.
 *
 * Invariant: at every moment a batch is in memory or in the sealed history. A lookup starts in both
 * in one turn of the event loop, and a generation leaves memory in the turn in which its segments
 * enter the history: so no lookup misses it, however long it then reads.
 */
import { assert } from "../assert.ts";
import { SYSTEM_SOURCE } from "../event/system_names.ts";
import type { LogFile, LogSnapshot } from "../log/read/snapshot.ts";
import type { StreamSource } from "../log/read/stream_counts.ts";
import { CorruptLogError } from "../log/storage/errors.ts";
import type { SealedHistory } from "../log/segment/sealed_history.ts";
import type { StreamGrowth } from "../log/wal/commit_builder.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { Generation, type Retirement, retirementBatchId } from "./generation.ts";

/** The streams at an event; later commits do not change it. */
export interface StreamsAt {
  /** Parts of the log, from oldest to newest. */
  sources: readonly StreamSource[];
  /** Approximate memory of the parts that are not sealed. */
  sizeBytes: number;
  /** Last event counted; null for an empty log. */
  throughEventId: string | null;
}

export class LogState {
  /** What is durable now. */
  readonly snapshot: () => LogSnapshot;
  /** From the tail's to the oldest unsealed one. */
  #generations: readonly Generation[] = [new Generation()];
  #sealed: SealedHistory | null = null;
  /** The count of recovered streams in progress. */
  #counting: Promise<void> | null = null;

  constructor(snapshot: () => LogSnapshot) {
    this.snapshot = snapshot;
  }

  /** Sets the sealed history; called before any batch is added. */
  open(sealed: SealedHistory): void {
    this.#sealed = sealed;
  }

  /** Adds the next batch in log order that recovery finds. @throws {CorruptLogError} */
  addRecovered(entry: BatchEntry): void {
    if (this.#findUnsealedBatch(entry.source, entry.batch_id) !== undefined) {
      throw new CorruptLogError(
        `batch ${entry.batch_id} of source ${entry.source} is committed twice, ` +
          `the second time at event ${entry.first_event_id}`,
      );
    }
    this.#checkRetired(this.#generations[0]!.addRecovered(entry));
  }

  /** Adds the next durable batch in log order and its events by stream. */
  add(entry: BatchEntry, growth: readonly StreamGrowth[]): void {
    this.#checkRetired(this.#generations[0]!.add(entry, growth));
  }

  /** Starts a generation for the batches that follow. */
  rotated(): void {
    this.#generations = [new Generation(), ...this.#generations];
  }

  /** Drops the oldest generation; its batches are in the sealed history from this turn on. */
  dropSealed(): void {
    assert(this.#generations.length > 1, "the generation of the tail is never sealed");
    this.#generations = this.#generations.slice(0, -1);
  }

  /** The committed batch of an identity; null when there is none. */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    return this.#findUnsealedBatch(source, batchId) ??
      await this.#sealed?.findBatch(source, batchId) ?? null;
  }

  /** Last event of a source; null when it has none. */
  async sourceFrontier(source: string): Promise<string | null> {
    return this.#findUnsealed((generation) => generation.frontierOf(source)) ??
      await this.#sealed?.sourceFrontier(source) ?? null;
  }

  /** Last event of a stream; null when it has none. */
  async streamFrontier(source: string, stream: string): Promise<string | null> {
    while (!this.#isCounted) await this.#count();
    const find = (generation: Generation) => generation.streams.frontier(source, stream);
    return this.#findUnsealed((generation) => find(generation) ?? undefined) ??
      await this.#sealed?.streamFrontier(source, stream) ?? null;
  }

  /** How a source was retired; null when it was not. */
  async findRetirement(source: string): Promise<Retirement | null> {
    for (const generation of this.#generations) {
      const known = generation.retirementOf(source);
      if (known !== undefined) return known;
      // A retirement follows the last event of its source.
      if (generation.frontierOf(source) !== undefined) return null;
    }
    // A source has no events after its retirement, so the batch id follows from its last one.
    const finalFrontier = await this.sourceFrontier(source);
    if (finalFrontier === null) return null;
    const batchId = retirementBatchId(source, finalFrontier);
    const entry = await this.findBatch(SYSTEM_SOURCE, batchId);
    return entry === null ? null : { finalFrontier, retirementEventId: entry.first_event_id };
  }

  /** All streams at the frontier. */
  async streams(): Promise<StreamsAt> {
    while (!this.#isCounted) await this.#count();
    // The snapshot and the counts are taken in one turn of the event loop.
    const { files, frontier } = this.snapshot();
    const counts = this.#generations.map((generation) => generation.streams.copy()).reverse();
    return {
      sources: [...sealedStreams(files), ...counts],
      sizeBytes: counts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      throughEventId: frontier,
    };
  }

  get #isCounted(): boolean {
    return this.#generations.every(({ isCounted }) => isCounted);
  }

  async #count(): Promise<void> {
    this.#counting ??= this.#countRecovered().finally(() => this.#counting = null);
    await this.#counting;
  }

  /** Counts what recovery found, one file after the other. Later commits are counted apart. */
  async #countRecovered(): Promise<void> {
    const files = unsealedFiles(this.snapshot());
    const generations = this.#generations.toReversed();
    assert(files.length >= generations.length - 1, "only the tail may be empty");
    for (const [place, generation] of generations.entries()) {
      if (!generation.isCounted) await generation.countRecovered(files[place]!);
    }
  }

  #checkRetired(retired: string | null): void {
    if (retired === null) return;
    const { finalFrontier } = this.#generations[0]!.retirementOf(retired)!;
    const unsealed = this.#findUnsealed((generation) => generation.frontierOf(retired));
    assert(
      unsealed === undefined || unsealed === finalFrontier,
      "a source is retired at its last event",
    );
  }

  #findUnsealedBatch(source: string, batchId: string): BatchEntry | undefined {
    return this.#findUnsealed((generation) => generation.findBatch(source, batchId));
  }

  /** The first value found, from the newest generation to the oldest. */
  #findUnsealed<Value>(find: (generation: Generation) => Value | undefined): Value | undefined {
    for (const generation of this.#generations) {
      const found = find(generation);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Streams of the segments among the files. */
export function sealedStreams(files: readonly LogFile[]): StreamSource[] {
  return files.map(({ streams }) => streams).filter((streams) => streams !== null);
}

/** The unsealed files of a snapshot, from oldest to newest. */
export function unsealedFiles({ files }: LogSnapshot): readonly LogFile[] {
  return files.filter(({ streams }) => streams === null);
}
