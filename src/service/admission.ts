/**
 * A memory budget, for request bodies or for responses. A body is admitted with a small
 * reservation, which grows as the body arrives and is held until its response is known.
 *
 * A reserve for one body of maximum size is set aside for the body that has waited longest to grow,
 * so partly received bodies cannot deadlock. None is admitted while an admitted one waits to grow.
 */
import { assert } from "../assert.ts";
import { ApiError } from "../event/api_error.ts";
import {
  ADMISSION_WAIT_MS,
  ADMISSION_WAITERS_MAX,
  ADMITTED_BODY_BYTES_MAX,
  INGEST_BODY_BYTES_MAX,
} from "../limits.ts";

const DEFAULT_LIMITS = {
  /** Bytes reserved by all bodies together. */
  totalBytes: ADMITTED_BODY_BYTES_MAX,
  /** The largest single body; at most half of `totalBytes`. */
  bodyBytes: INGEST_BODY_BYTES_MAX,
  waitersMax: ADMISSION_WAITERS_MAX,
  admitWaitMs: ADMISSION_WAIT_MS,
  /** How long an admitted body waits for more memory before it gets a 429. */
  growWaitMs: 10_000,
};

/** Memory reserved by one body. Only `Admission` changes it. */
export interface Reservation {
  bytes: number;
  /** Whether it belongs to a small body, which is counted apart. */
  isSmall?: boolean;
}

/** A small body takes at most this share of the budget. */
const SMALL_SHARE = 1 / 256;
/** Additional budget for small bodies, which do not wait for large ones. */
const SMALL_BODIES_SHARE = 1 / 8;

interface Waiter {
  reservation: Reservation;
  toBytes: number;
  timer: ReturnType<typeof setTimeout>;
  resolve: () => void;
}

export class Admission {
  readonly #limits: typeof DEFAULT_LIMITS;
  #heldBytes = 0;
  #smallBytes = 0;
  /** The body that may use the reserve. */
  #finishing: Reservation | null = null;
  /** Admitted bodies waiting for more memory, in order. */
  readonly #growing: Waiter[] = [];
  /** Bodies waiting to be admitted, in order. */
  readonly #arriving: Waiter[] = [];

  constructor(limits: Partial<typeof DEFAULT_LIMITS> = {}) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    assert(this.#limits.bodyBytes * 2 <= this.#limits.totalBytes, "the budget must fit two bodies");
  }

  get heldBytes(): number {
    return this.#heldBytes + this.#smallBytes;
  }

  /**
   * Reserves memory for the first `bytes` of a body.
   * @param isWhole whether the body is not larger, so that it need not wait if it is small.
   * @throws {ApiError} `overloaded`.
   */
  admit(bytes: number, isWhole?: boolean): Reservation | Promise<Reservation> {
    const { totalBytes } = this.#limits;
    const isSmall = isWhole === true && bytes <= totalBytes * SMALL_SHARE &&
      this.#smallBytes + bytes <= totalBytes * SMALL_BODIES_SHARE;
    if (isSmall) {
      this.#smallBytes += bytes;
      return { bytes, isSmall };
    }
    const admitted = this.tryAdmit(bytes);
    if (admitted !== null) return admitted;
    const reservation: Reservation = { bytes: 0 };
    if (this.#arriving.length >= this.#limits.waitersMax) throw overloaded();
    return this.#wait(this.#arriving, reservation, bytes).then(() => reservation);
  }

  /** Reserves memory if it is available and no other waits for it; returns null otherwise. */
  tryAdmit(bytes: number): Reservation | null {
    const reservation: Reservation = { bytes: 0 };
    const isQueued = this.#growing.length > 0 || this.#arriving.length > 0;
    if (isQueued || !this.#hasRoom(reservation, bytes)) return null;
    this.#grant(reservation, bytes);
    return reservation;
  }

  /** Grows a reservation to `toBytes`. @throws {ApiError} `overloaded`; it is unchanged then. */
  grow(reservation: Reservation, toBytes: number): void | Promise<void> {
    assert(toBytes <= this.#limits.bodyBytes, "a body must stay within its limit");
    const isFirst = this.#growing.length === 0 || reservation === this.#finishing;
    if (isFirst && this.#hasRoom(reservation, toBytes)) return this.#grant(reservation, toBytes);
    const granted = this.#wait(this.#growing, reservation, toBytes);
    this.#serveWaiters();
    return granted;
  }

  /** Releases a reservation. Repeated calls do nothing. */
  release(reservation: Reservation): void {
    if (reservation.isSmall === true) this.#smallBytes -= reservation.bytes;
    else this.#heldBytes -= reservation.bytes;
    reservation.bytes = 0;
    if (reservation === this.#finishing) this.#finishing = null;
    this.#serveWaiters();
  }

  #hasRoom(reservation: Reservation, toBytes: number): boolean {
    const { totalBytes, bodyBytes } = this.#limits;
    const limitBytes = reservation === this.#finishing ? totalBytes : totalBytes - bodyBytes;
    return this.#heldBytes + toBytes - reservation.bytes <= limitBytes;
  }

  #grant(reservation: Reservation, toBytes: number): void {
    this.#heldBytes += toBytes - reservation.bytes;
    reservation.bytes = toBytes;
    assert(this.#heldBytes <= this.#limits.totalBytes, "reservations must stay within the budget");
  }

  #wait(queue: Waiter[], reservation: Reservation, toBytes: number): Promise<void> {
    const { admitWaitMs, growWaitMs } = this.#limits;
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        queue.splice(queue.indexOf(waiter), 1);
        reject(overloaded());
        this.#serveWaiters();
      };
      const timer = setTimeout(giveUp, queue === this.#growing ? growWaitMs : admitWaitMs);
      const waiter: Waiter = { reservation, toBytes, timer, resolve };
      queue.push(waiter);
    });
  }

  #serveWaiters(): void {
    for (;;) {
      const queue = this.#growing.length > 0 ? this.#growing : this.#arriving;
      const [first] = queue;
      if (first === undefined) return;
      const { reservation, toBytes, timer, resolve } = first;
      if (!this.#hasRoom(reservation, toBytes)) {
        if (queue === this.#arriving || this.#finishing !== null) return;
        this.#finishing = reservation;
      }
      queue.shift();
      clearTimeout(timer);
      this.#grant(reservation, toBytes);
      resolve();
    }
  }
}

function overloaded(): ApiError {
  const message = "too many requests are in memory, so nothing was written; retry later";
  return new ApiError("overloaded", message);
}
