/**
 * What the service decides and lists streams by: everything that is committed. What is not sealed
 * is in memory, filled from commit headers at a start and after each commit, so that it holds
 * nothing that is not durable. What is sealed is looked up in its segments.
 *
 * Invariant: at every moment a batch is in memory or in the sealed history. A look-up asks both in
 * one turn of the event loop, and a generation leaves memory in the turn in which its segments come
 * into the history: so no look-up misses it, however long it then reads.
 */
import { assert } from "../assert.ts";
import { SYSTEM_SOURCE } from "../event/system_names.ts";
import type { LogFile, LogSnapshot } from "../log/read/snapshot.ts";
import type { StreamSource } from "../log/read/stream_counts.ts";
import type { SealedHistory } from "../log/segment/sealed_history.ts";
import type { StreamGrowth } from "../log/wal/commit_builder.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { Generation, type Retirement, retirementBatchId } from "./generation.ts";

/** The streams at an event; later commits change nothing of it. */
export interface StreamsAt {
  /** Those of parts of the log, from oldest to newest. */
  sources: readonly StreamSource[];
  /** Memory that is taken for it, about. */
  sizeBytes: number;
  /** Last event that is counted; null for an empty log. */
  throughEventId: string | null;
}

export class LogState {
  readonly #snapshot: () => LogSnapshot;
  /** From the newest, that of the tail, to the oldest that is not sealed. */
  #generations: readonly Generation[] = [new Generation()];
  #sealed: SealedHistory | null = null;
  /** The streams that a start found are being counted. */
  #counting: Promise<void> | null = null;

  /** @param snapshot what is durable now. */
  constructor(snapshot: () => LogSnapshot) {
    this.#snapshot = snapshot;
  }

  /** Takes in what is sealed, before any batch. */
  open(sealed: SealedHistory): void {
    this.#sealed = sealed;
  }

  /** Takes in a batch that a start finds; they come in log order. */
  addRecovered(entry: BatchEntry): void {
    this.#checkRetired(this.#generations[0]!.addRecovered(entry));
  }

  /** Takes in a durable batch and what it adds to streams; they come in log order. */
  add(entry: BatchEntry, growth: readonly StreamGrowth[]): void {
    this.#checkRetired(this.#generations[0]!.add(entry, growth));
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
    return this.#findUnsealed((generation) => generation.findBatch(source, batchId)) !== undefined;
  }

  /** The committed batch of that identity; null when there is none. */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    return this.#findUnsealed((generation) => generation.findBatch(source, batchId)) ??
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
    // A source has no events after its retirement, so its last one tells the batch id of that.
    const finalFrontier = await this.sourceFrontier(source);
    if (finalFrontier === null) return null;
    const batchId = retirementBatchId(source, finalFrontier);
    const entry = await this.findBatch(SYSTEM_SOURCE, batchId);
    return entry === null ? null : { finalFrontier, retirementEventId: entry.first_event_id };
  }

  /** The streams as they are now. */
  async streams(): Promise<StreamsAt> {
    while (!this.#isCounted) await this.#count();
    // Both in one turn of the event loop.
    const { files, frontier } = this.#snapshot();
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

  /** Counts what a start found, a file at a time. What is committed meanwhile is counted apart. */
  async #countRecovered(): Promise<void> {
    const files = unsealedFiles(this.#snapshot());
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

  /** What the newest generation has that has any. */
  #findUnsealed<Value>(find: (generation: Generation) => Value | undefined): Value | undefined {
    for (const generation of this.#generations) {
      const found = find(generation);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** The streams of the files that are segments. */
export function sealedStreams(files: readonly LogFile[]): StreamSource[] {
  return files.map(({ streams }) => streams).filter((streams) => streams !== null);
}

/** The files of a snapshot that are not sealed, from oldest to newest. */
export function unsealedFiles({ files }: LogSnapshot): readonly LogFile[] {
  return files.filter(({ streams }) => streams === null);
}
