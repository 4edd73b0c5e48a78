/**
 * Bounds what the batches that wait for the writer hold in memory besides their bodies. A canonical
 * payload can have four times the bytes it was sent with, so a body is prepared only when those
 * before it have left room: until then it waits as it came.
 *
 * Invariant: a batch is prepared only while the others hold less than the limit, so together they
 * hold less than the limit and the largest batch.
 */
import type { PreparedBatch } from "../event/types.ts";
import { freeOwnMemory } from "../free_memory.ts";

/**
 * Batches that are prepared or wait for the writer; further bodies wait as they came. The writer
 * has one of 10,000 usual events and the next one is being prepared; of smaller ones several
 * commits wait.
 */
export const PREPARED_BYTES_MAX: number = 8 * 1024 * 1024;

export class PreparedRoom {
  readonly #limitBytes: number;
  #heldBytes = 0;
  /** Bodies that wait to be prepared, in order. */
  readonly #waiting: (() => void)[] = [];

  constructor(limitBytes: number = PREPARED_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Prepares a batch in its turn and holds its room until `use` has its answer. Then the lines and
   * envelopes of a large batch are freed.
   * @param bodyBytes what it counts for while it is being prepared.
   */
  async run<T>(
    bodyBytes: number,
    prepare: () => PreparedBatch | Promise<PreparedBatch>,
    use: (batch: PreparedBatch) => Promise<T>,
  ): Promise<T> {
    if (this.#isFull || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    let bytes = bodyBytes;
    this.#heldBytes += bytes;
    try {
      const preparing = prepare();
      if (preparing instanceof Promise) this.#wakeNext();
      const batch = preparing instanceof Promise ? await preparing : preparing;
      this.#heldBytes -= bytes;
      bytes = heldBytes(batch);
      this.#heldBytes += bytes;
      this.#wakeNext();
      try {
        return await use(batch);
      } finally {
        free(batch);
      }
    } finally {
      this.#heldBytes -= bytes;
      this.#wakeNext();
    }
  }

  get #isFull(): boolean {
    return this.#heldBytes >= this.#limitBytes;
  }

  /** One at a time: the one that is woken wakes the next once it is known what it holds. */
  #wakeNext(): void {
    if (!this.#isFull) this.#waiting.shift()?.();
  }
}

function heldBytes({ events: { lines, envelopes } }: PreparedBatch): number {
  return lines.length + envelopes.length;
}

/**
 * The collector of the main thread would start four times as often for this memory: it took a
 * quarter of the processor time of an event in batches of 1,000.
 */
function free({ events: { lines, envelopes } }: PreparedBatch): void {
  freeOwnMemory(lines);
  freeOwnMemory(envelopes);
}
