/**
 * The byte budget of request bodies. A body is admitted with little room and gets more as it
 * arrives; it keeps its room until its response is known.
 *
 * Invariants: held bytes never exceed the limit. Room for one largest body is reserved for the
 * body that has waited longest for more room, so partly received bodies cannot deadlock. No body
 * is admitted while an admitted one waits for more room.
 */
import { assert } from "../assert.ts";
import { ApiError } from "../event/api_error.ts";
import {
  ADMISSION_WAIT_MS,
  ADMISSION_WAITERS_MAX,
  ADMITTED_BODY_BYTES_MAX,
  INGEST_BODY_BYTES_MAX,
} from "../limits.ts";

/** An admitted body that needs more room waits this long for it before it gets 429. */
const BODY_ROOM_WAIT_MS = 10_000;

const DEFAULT_LIMITS = {
  /** Bytes held by all bodies together. */
  totalBytes: ADMITTED_BODY_BYTES_MAX,
  /** The largest single body; at most half of `totalBytes`. */
  bodyBytes: INGEST_BODY_BYTES_MAX,
  /** Bodies that wait to be admitted. */
  waitersMax: ADMISSION_WAITERS_MAX,
  /** How long one waits to be admitted. */
  admitWaitMs: ADMISSION_WAIT_MS,
  /** How long an admitted one waits for more room. */
  growWaitMs: BODY_ROOM_WAIT_MS,
};

/** Room that one body holds. Only `Admission` changes it. */
export interface Reservation {
  bytes: number;
}

interface Waiter {
  reservation: Reservation;
  toBytes: number;
  timer: ReturnType<typeof setTimeout>;
  resolve: () => void;
}

export class Admission {
  readonly #limits: typeof DEFAULT_LIMITS;
  #heldBytes = 0;
  /** The body that may use the reserved room. */
  #finishing: Reservation | null = null;
  /** Admitted bodies waiting for more room, in order. */
  readonly #growing: Waiter[] = [];
  /** Bodies waiting to be admitted, in order. */
  readonly #arriving: Waiter[] = [];

  constructor(limits: Partial<typeof DEFAULT_LIMITS> = {}) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    assert(this.#limits.bodyBytes * 2 <= this.#limits.totalBytes, "room is left beside one body");
  }

  /** Bytes held by all bodies together. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Makes room for the first `bytes` of a body, at once if possible.
   * @throws {ApiError} `overloaded` when no room was free in time, or too many wait already.
   */
  admit(bytes: number): Reservation | Promise<Reservation> {
    const reservation: Reservation = { bytes: 0 };
    const isQueued = this.#growing.length > 0 || this.#arriving.length > 0;
    if (!isQueued && this.#hasRoom(reservation, bytes)) {
      this.#grant(reservation, bytes);
      return reservation;
    }
    if (this.#arriving.length >= this.#limits.waitersMax) throw overloaded();
    return this.#wait(this.#arriving, reservation, bytes).then(() => reservation);
  }

  /**
   * Enlarges the room of a body to `toBytes` in all.
   * @throws {ApiError} `overloaded` when no room was free in time; the body keeps what it had.
   */
  grow(reservation: Reservation, toBytes: number): void | Promise<void> {
    assert(toBytes <= this.#limits.bodyBytes, "a body stays within its limit");
    const isFirst = this.#growing.length === 0 || reservation === this.#finishing;
    if (isFirst && this.#hasRoom(reservation, toBytes)) return this.#grant(reservation, toBytes);
    const granted = this.#wait(this.#growing, reservation, toBytes);
    this.#serveWaiters();
    return granted;
  }

  /** Frees the room of a body. Repeated calls do nothing. */
  release(reservation: Reservation): void {
    this.#heldBytes -= reservation.bytes;
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
    assert(this.#heldBytes <= this.#limits.totalBytes, "held bodies stay within the budget");
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
    while (this.#growing.length > 0) {
      const { reservation, toBytes } = this.#growing[0]!;
      if (!this.#hasRoom(reservation, toBytes)) {
        if (this.#finishing !== null) return;
        this.#finishing = reservation;
      }
      this.#serveFirst(this.#growing);
    }
    while (this.#arriving.length > 0) {
      const { reservation, toBytes } = this.#arriving[0]!;
      if (!this.#hasRoom(reservation, toBytes)) return;
      this.#serveFirst(this.#arriving);
    }
  }

  #serveFirst(queue: Waiter[]): void {
    const { reservation, toBytes, timer, resolve } = queue.shift()!;
    clearTimeout(timer);
    this.#grant(reservation, toBytes);
    resolve();
  }
}

function overloaded(): ApiError {
  return new ApiError(
    "overloaded",
    "no room for the request body at the moment; nothing was written, send it again",
  );
}
