/**
 * A hash table from a pair of strings to a record of fixed size. It holds millions of entries
 * outside of the JavaScript heap, at a third of the memory of a `Map` of objects. Entries are
 * numbered in order of insertion, and never removed.
 *
 * The table has open addressing; its slots hold an entry's number plus one, and 0 if free. Records
 * are in blocks, and a block that a snapshot has is copied before it is changed.
 */
import { Buffer } from "node:buffer";
import { DIGIT_VALUES } from "../../event/hash.ts";

export const BLOCK_ENTRIES = 2048;
const FIRST_ENTRIES = 16;
const FIRST_KEY_BYTES = 512;
const GROWTH_FACTOR = 1.25;
const SLOTS_MIN = 32;
const SPACE = 0x20;
const HYPHEN = 0x2d;

/** Keys come from clients; the seed keeps them from choosing keys that collide. */
const SEED = Math.trunc(Math.random() * 2 ** 32);

/** The key being looked up, and its hash. Lookups are synchronous, so one is enough. */
let bytes = Buffer.allocUnsafe(FIRST_KEY_BYTES);
let size = 0;
let hash = 0;

/** Encodes the key `first second`. */
function encode(first: string, second: string): void {
  const bytesMax = 3 * (first.length + second.length) + 1;
  if (bytes.length < bytesMax) bytes = Buffer.allocUnsafe(bytesMax);
  size = put(first, 0);
  bytes[size++] = SPACE;
  size = put(second, size);
  let mixed = SEED;
  for (let at = 0; at < size; at++) mixed = Math.imul(mixed ^ bytes[at]!, 0x01000193);
  mixed = Math.imul(mixed ^ mixed >>> 16, 0x85ebca6b);
  hash = (Math.imul(mixed ^ mixed >>> 13, 0xc2b2ae35) ^ mixed >>> 16) >>> 0;
}

/** Writes text at `start` of the encoded key; returns its end. */
function put(text: string, start: number): number {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) return start + bytes.write(text, start);
    bytes[start + at] = code;
  }
  return start + text.length;
}

/** A record is in `bytes`, from `at` on. */
export interface RecordPlace {
  bytes: Buffer;
  at: number;
}

export class KeyTable {
  readonly #recordBytes: number;
  #keys = Buffer.allocUnsafeSlow(FIRST_KEY_BYTES);
  /** The end of each entry's key, which starts where the key before ends. */
  #ends = new Uint32Array(FIRST_ENTRIES);
  #hashes = new Uint32Array(FIRST_ENTRIES);
  /** Blocks of BLOCK_ENTRIES records. */
  readonly #records: Buffer[] = [];
  /** Blocks that a snapshot has. */
  #shared = new Set<Buffer>();
  #slots = new Uint32Array(SLOTS_MIN);
  #count = 0;

  constructor(recordBytes: number) {
    this.#recordBytes = recordBytes;
  }

  get count(): number {
    return this.#count;
  }

  get sizeBytes(): number {
    return this.#keys.length + this.#ends.byteLength + this.#hashes.byteLength +
      this.#records.length * BLOCK_ENTRIES * this.#recordBytes + this.#slots.byteLength;
  }

  /** Returns the number of the entry with the key `first second`; -1 if there is none. */
  find(first: string, second: string): number {
    encode(first, second);
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask;; slot = slot + 1 & mask) {
      const number = this.#slots[slot]! - 1;
      if (number < 0 || this.#hasKey(number)) return number;
    }
  }

  /** Like `find()`, but adds a new key, with a record of zeros. */
  add(first: string, second: string): number {
    const found = this.find(first, second);
    if (found >= 0) return found;
    const number = this.#count++;
    const start = this.#startOf(number);
    if (start + size > this.#keys.length) {
      const keys = Buffer.allocUnsafeSlow(Math.ceil(GROWTH_FACTOR * (start + size)));
      keys.set(this.#keys);
      this.#keys = keys;
    }
    if (number === this.#ends.length) {
      this.#ends = grown(this.#ends);
      this.#hashes = grown(this.#hashes);
    }
    this.#keys.set(bytes.subarray(0, size), start);
    this.#ends[number] = start + size;
    this.#hashes[number] = hash;
    if (number % BLOCK_ENTRIES === 0) {
      this.#records.push(Buffer.alloc(BLOCK_ENTRIES * this.#recordBytes));
    }
    if (this.#count * 3 > this.#slots.length * 2) this.#growSlots();
    else this.#fill(hash, number);
    return number;
  }

  keyOf(number: number): string {
    return this.#keys.toString("utf8", this.#startOf(number), this.#ends[number]);
  }

  recordOf(number: number, records: readonly Buffer[] = this.#records): RecordPlace {
    const bytes = records[Math.floor(number / BLOCK_ENTRIES)]!;
    return { bytes, at: number % BLOCK_ENTRIES * this.#recordBytes };
  }

  /** Returns an entry's record to write to. */
  writableRecordOf(number: number): RecordPlace {
    const { bytes } = this.recordOf(number);
    if (this.#shared.delete(bytes)) {
      this.#records[Math.floor(number / BLOCK_ENTRIES)] = Buffer.from(bytes);
    }
    return this.recordOf(number);
  }

  /** Returns all records as they are now, for `recordOf()`. */
  snapshot(): readonly Buffer[] {
    this.#shared = new Set(this.#records);
    return [...this.#records];
  }

  #startOf(number: number): number {
    return number === 0 ? 0 : this.#ends[number - 1]!;
  }

  #hasKey(number: number): boolean {
    const start = this.#startOf(number);
    const end = this.#ends[number]!;
    if (this.#hashes[number] !== hash || end - start !== size) return false;
    for (let byte = 0; byte < size; byte++) {
      if (this.#keys[start + byte] !== bytes[byte]) return false;
    }
    return true;
  }

  #growSlots(): void {
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (let number = 0; number < this.#count; number++) this.#fill(this.#hashes[number]!, number);
  }

  #fill(hash: number, number: number): void {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    while (this.#slots[slot] !== 0) slot = slot + 1 & mask;
    this.#slots[slot] = number + 1;
  }
}

function grown(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(Math.ceil(GROWTH_FACTOR * values.length));
  larger.set(values);
  return larger;
}

/** Writes an event id or lowercase hex digits as bytes at `at`. */
export function writeHex(into: Buffer, at: number, text: string): void {
  for (let digit = 0; digit < text.length; digit += 2) {
    if (text.charCodeAt(digit) === HYPHEN) digit += 1;
    const high = DIGIT_VALUES[text.charCodeAt(digit)]!;
    into[at++] = high << 4 | DIGIT_VALUES[text.charCodeAt(digit + 1)]!;
  }
}
