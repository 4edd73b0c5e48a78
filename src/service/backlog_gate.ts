/**
 * Holds back new batches while sealing is too far behind, so that what is not sealed stays bounded.
 * Waiters pass in order of arrival, as soon as there is room.
 */
import { ApiError } from "../event/api_error.ts";
import { BACKLOG_WAIT_MS, BACKLOG_WAITING_BYTES_MAX } from "../limits.ts";
import type { Log } from "../log/log.ts";

export class BacklogGate {
  readonly #log: Pick<Log, "isBehind" | "nextSeal" | "endWaits">;
  readonly #waitMs: number;
  #waitingBytes = 0;
  #isClosed = false;

  constructor(
    log: Pick<Log, "isBehind" | "nextSeal" | "endWaits">,
    waitMs: number = BACKLOG_WAIT_MS,
  ) {
    this.#log = log;
    this.#waitMs = waitMs;
  }

  /** See `EventLogService.whenRoom()`. */
  async pass(bodyBytes: number): Promise<void> {
    const isAlone = this.#waitingBytes === 0;
    if (!isAlone && this.#waitingBytes + bodyBytes > BACKLOG_WAITING_BYTES_MAX) throw behind();
    this.#waitingBytes += bodyBytes;
    let timer;
    const timeout = new Promise<void>((resolve) => timer = setTimeout(resolve, this.#waitMs));
    let isOver = false;
    void timeout.then(() => isOver = true);
    try {
      while (this.#log.isBehind) {
        if (isOver || this.#isClosed) throw behind();
        await Promise.race([this.#log.nextSeal, timeout]);
      }
    } finally {
      clearTimeout(timer);
      this.#waitingBytes -= bodyBytes;
    }
  }

  /** Ends all waits. */
  close(): void {
    this.#isClosed = true;
    this.#log.endWaits();
  }
}

function behind(): ApiError {
  return new ApiError(
    "overloaded",
    "sealing is too far behind, so nothing was written; retry later",
  );
}
