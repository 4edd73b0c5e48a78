/**
 * Event ids: RFC 9562 UUIDv7, in lowercase with hyphens. The most significant digits come first, so
 * comparing ids as strings compares their positions in the log.
 *
 * Invariant: an `EventIdSource` returns strictly increasing ids, even if the clock goes backwards.
 */
const EVENT_ID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether a value is a UUIDv7 in canonical form. */
export function isEventId(value: unknown): value is string {
  return typeof value === "string" && EVENT_ID_PATTERN.test(value);
}

/** Whether the 16 bytes of a UUID are those of a UUIDv7 (RFC 9562 section 5.7). */
export function isEventIdBytes(bytes: Uint8Array): boolean {
  return bytes[6]! >> 4 === 7 && bytes[8]! >> 6 === 0b10;
}

/** Returns an id's timestamp in Unix milliseconds. */
export function eventIdTimestampMs(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const TIMESTAMP_END = 2 ** 48;
/** rand_a and rand_b form a 74-bit counter. Its high part is rand_a and 14 bits of rand_b. */
const HIGH_END = 2 ** 26;
const RAND_B_HIGH_END = 2 ** 14;
const LOW_END = 2 ** 48;

const TAIL_END = 2 ** 12;
/** The last three digits, precomputed because consecutive ids usually differ only there. */
const TAILS = Array.from({ length: TAIL_END }, (_, value) => hex(value, 3));

/**
 * Generates ids in strictly increasing order. Within a millisecond, or while the clock is behind
 * the last id, the counter is incremented by one (RFC 9562 section 6.2, method 2). A new
 * millisecond resets it to a random value with the top bit clear, which leaves 2^73 increments.
 */
export class EventIdSource {
  readonly #clockMs: () => number;
  readonly #randomBytes: (into: Uint8Array) => void;
  readonly #random = new Uint8Array(10);
  #timestampMs = -1;
  #high = 0;
  #low = 0;
  /** All digits of the current id except the last three. */
  #head = "";

  /**
   * @param clockMs returns Unix milliseconds.
   * @param randomBytes fills its argument.
   * @param last id of the log's last event; null if there is none. All new ids are greater.
   */
  constructor(
    clockMs: () => number,
    randomBytes: (into: Uint8Array) => void,
    last: string | null,
  ) {
    this.#clockMs = clockMs;
    this.#randomBytes = randomBytes;
    if (last === null) return;
    if (!isEventId(last)) throw new TypeError("last event id is not a canonical UUIDv7");
    this.#set(
      eventIdTimestampMs(last),
      parseInt(last.slice(15, 18), 16) * RAND_B_HIGH_END + parseInt(last.slice(19, 23), 16) -
        0x8000,
      parseInt(last.slice(24), 16),
    );
  }

  /** Returns the next id. @throws {RangeError} if no 48-bit timestamp is left. */
  next(): string {
    const nowMs = Math.max(0, Math.trunc(this.#clockMs()));
    if (nowMs > this.#timestampMs) this.#start(nowMs);
    else this.#increment();
    return this.#head + TAILS[this.#low % TAIL_END];
  }

  #increment(): void {
    if (this.#low < LOW_END - 1) {
      this.#low += 1;
      if (this.#low % TAIL_END === 0) this.#renewHead();
    } else if (this.#high < HIGH_END - 1) this.#set(this.#timestampMs, this.#high + 1, 0);
    else this.#start(this.#timestampMs + 1);
  }

  #start(timestampMs: number): void {
    if (timestampMs >= TIMESTAMP_END) {
      throw new RangeError("event ids are exhausted: no later time fits in a UUIDv7's 48 bits");
    }
    this.#randomBytes(this.#random);
    const view = new DataView(this.#random.buffer);
    const randA = view.getUint16(0) % (HIGH_END / RAND_B_HIGH_END / 2);
    const high = randA * RAND_B_HIGH_END + view.getUint16(2) % RAND_B_HIGH_END;
    this.#set(timestampMs, high, view.getUint16(4) * 2 ** 32 + view.getUint32(6));
  }

  #set(timestampMs: number, high: number, low: number): void {
    this.#timestampMs = timestampMs;
    this.#high = high;
    this.#low = low;
    this.#renewHead();
  }

  #renewHead(): void {
    const time = hex(this.#timestampMs, 12);
    const randA = Math.trunc(this.#high / RAND_B_HIGH_END);
    const randBHigh = this.#high % RAND_B_HIGH_END;
    this.#head = time.slice(0, 8) + "-" + time.slice(8) + "-7" + hex(randA, 3) + "-" +
      hex(randBHigh + 0x8000, 4) + "-" + hex(Math.trunc(this.#low / TAIL_END), 9);
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
