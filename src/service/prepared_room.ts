/**
 * Bounds what the batches that wait for the writer hold in memory besides their bodies. A canonical
 * payload can have four times the bytes it was sent with, so a body is prepared only when those
 * before it have left room: until then it waits as it came.
 *
 * Invariant: a batch is prepared only while the others hold less than the limit, so together they
 * hold less than the limit and the largest batch.
 */
import type { PreparedBatch } from "../event/types.ts";
import { PREPARED_PAYLOAD_CHARS_MAX } from "../limits.ts";

export class PreparedRoom {
  readonly #limitChars: number;
  #heldChars = 0;
  /** Bodies that wait to be prepared, in order. */
  readonly #waiting: (() => void)[] = [];

  constructor(limitChars: number = PREPARED_PAYLOAD_CHARS_MAX) {
    this.#limitChars = limitChars;
  }

  /** Prepares a batch in its turn and holds its room until `use` has its answer. */
  async run<T>(
    prepare: () => PreparedBatch,
    use: (batch: PreparedBatch) => Promise<T>,
  ): Promise<T> {
    if (this.#isFull || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    let chars = 0;
    try {
      const batch = prepare();
      chars = payloadChars(batch);
      this.#heldChars += chars;
      this.#wakeNext();
      return await use(batch);
    } finally {
      this.#heldChars -= chars;
      this.#wakeNext();
    }
  }

  get #isFull(): boolean {
    return this.#heldChars >= this.#limitChars;
  }

  /** One at a time: the one that is woken wakes the next once it is known what it holds. */
  #wakeNext(): void {
    if (!this.#isFull) this.#waiting.shift()?.();
  }
}

function payloadChars({ events }: PreparedBatch): number {
  let chars = 0;
  for (const { payload } of events) chars += payload.length;
  return chars;
}
