/** Holds back new batches while sealing is too far behind, so that what is unsealed is bounded. */
import { ApiError } from "../event/api_error.ts";
import { BACKLOG_WAIT_MS, BACKLOG_WAITING_BYTES_MAX } from "../limits.ts";
import type { Sealer } from "../log/sealing/sealer.ts";

export class BacklogGate {
  readonly #sealer: Sealer;
  readonly #waitMs: number;
  #waitingBytes = 0;
  #isEnded = false;

  constructor(sealer: Sealer, waitMs: number = BACKLOG_WAIT_MS) {
    this.#sealer = sealer;
    this.#waitMs = waitMs;
  }

  /** Whether new batches must wait for sealing. */
  get isClosed(): boolean {
    return this.#sealer.isBehind;
  }

  /**
   * Waits until sealing has caught up. @param bodyBytes size of the body that waits.
   * @throws {ApiError} `overloaded` if that takes too long, or too many bodies are waiting.
   */
  async pass(bodyBytes: number): Promise<void> {
    const waitingBytes = this.#waitingBytes + bodyBytes;
    if (waitingBytes > Math.max(bodyBytes, BACKLOG_WAITING_BYTES_MAX)) throw behind();
    this.#waitingBytes = waitingBytes;
    const endMs = performance.now() + this.#waitMs;
    try {
      while (this.isClosed) {
        if (performance.now() >= endMs || this.#isEnded) throw behind();
        await this.#sealer.nextSeal(endMs - performance.now());
      }
    } finally {
      this.#waitingBytes -= bodyBytes;
    }
  }

  endWaits(): void {
    this.#isEnded = true;
    this.#sealer.endWaits();
  }
}

function behind(): ApiError {
  const message = "sealing is too far behind, so nothing was written; retry later";
  return new ApiError("overloaded", message);
}
