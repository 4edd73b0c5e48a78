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

const TAIL_BITS = 12n;
const TAIL_END = 2 ** Number(TAIL_BITS);
/** The last three digits, precomputed because consecutive ids usually differ only there. */
const TAILS = Array.from({ length: TAIL_END }, (_, tail) => tail.toString(16).padStart(3, "0"));
/** An id's other bits without version and variant: 48 of timestamp, 62 of rand_a and rand_b. */
const UPPER_END = 2n ** 110n;
const RANDOM_END = 2n ** 62n;
const TIMESTAMP_MS_MAX = 2 ** 48 - 1;

/** Returns the preceding id, which no event need have; undefined if there is none. */
export function idBefore(eventId: string): string | undefined {
  if (!isEventId(eventId)) return undefined;
  const bits = bitsOf(eventId) - 1n;
  return bits < 0n ? undefined : formatId(bits);
}

/** Returns an id that precedes those of all events committed at or after a time. */
export function firstIdAt(unixMs: number): string {
  return formatId(BigInt(Math.min(Math.max(0, Math.floor(unixMs)), TIMESTAMP_MS_MAX)) << 74n);
}

/** Returns all bits without version and variant. */
function bitsOf(eventId: string): bigint {
  const digits = eventId.replaceAll("-", "");
  const high = BigInt(`0x${digits.slice(0, 12)}${digits.slice(13, 16)}`);
  return high * RANDOM_END + BigInt(`0x${digits.slice(16)}`) % RANDOM_END;
}

/** Inverse of `bitsOf()`. */
function formatId(bits: bigint): string {
  const high = (bits / RANDOM_END).toString(16).padStart(15, "0");
  const low = (2n * RANDOM_END + bits % RANDOM_END).toString(16);
  return `${high.slice(0, 12)}7${high.slice(12)}${low}`
    .replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * Generates ids in strictly increasing order. rand_a and rand_b form a 74-bit counter. Within a
 * millisecond, or while the clock is behind the last id, it is incremented by one (RFC 9562 section
 * 6.2, method 2), and carries into the timestamp. A new millisecond resets it to a random value
 * with the top bit clear, which leaves 2^73 increments.
 */
export class EventIdSource {
  readonly #clockMs: () => number;
  readonly #randomBytes: (into: Uint8Array) => void;
  readonly #random = new Uint8Array(10);
  #timestampMs = -1;
  #upper = 0n;
  #tail = 0;
  /** All digits of the current id except the last three. */
  #head = "";

  /** @param last id of the log's last event; all new ids are greater. */
  constructor(
    clockMs: () => number,
    randomBytes: (into: Uint8Array) => void,
    last: string | null,
  ) {
    this.#clockMs = clockMs;
    this.#randomBytes = randomBytes;
    if (last === null) return;
    if (!isEventId(last)) throw new TypeError("last event id is not a canonical UUIDv7");
    const bits = bitsOf(last);
    this.#set(bits >> TAIL_BITS, Number(bits % BigInt(TAIL_END)));
  }

  /** Returns the next id. @throws {RangeError} if no 48-bit timestamp is left. */
  next(): string {
    const nowMs = Math.max(0, Math.trunc(this.#clockMs()));
    if (nowMs > this.#timestampMs) this.#start(nowMs);
    else if (this.#tail < TAIL_END - 1) this.#tail += 1;
    else this.#set(this.#upper + 1n, 0);
    return this.#head + TAILS[this.#tail];
  }

  #start(timestampMs: number): void {
    this.#randomBytes(this.#random);
    const view = new DataView(this.#random.buffer);
    const random = view.getBigUint64(0) % (RANDOM_END / 2n);
    this.#set(BigInt(timestampMs) * RANDOM_END + random, view.getUint16(8) % TAIL_END);
  }

  #set(upper: bigint, tail: number): void {
    if (upper >= UPPER_END) {
      throw new RangeError("event ids are exhausted: no later time fits in a UUIDv7's 48 bits");
    }
    this.#upper = upper;
    this.#tail = tail;
    this.#timestampMs = Number(upper / RANDOM_END);
    this.#head = formatId(upper << TAIL_BITS).slice(0, -TAILS[0]!.length);
  }
}

/** Returns the Unix milliseconds in an id, about the time of its commit. */
export function idTimeMs(eventId: string): number {
  return parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16);
}
