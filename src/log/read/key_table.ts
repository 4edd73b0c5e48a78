/**
 * A hash table from a pair of strings to a record of fixed size. It holds millions of entries
 * outside of the JavaScript heap, at a third of the memory of a `Map` of objects. Entries are
 * numbered in order of insertion, and never removed.
 *
 * Entries are stored in blocks, whose keys and records can be read without the table. The table has
 * open addressing; its slots hold an entry's number plus one, and 0 if free.
 */
import { Buffer } from "node:buffer";
import { DIGIT_VALUES } from "../../event/hash.ts";

const BLOCK_BITS = 11;
/** Entries in a block, other than the last. */
export const BLOCK_ENTRIES: number = 1 << BLOCK_BITS;
const FIRST_BLOCK_ENTRIES = 16;
const FIRST_KEY_BYTES = 512;
const SLOTS_MIN = 32;
const SPACE = 0x20;
const HYPHEN = 0x2d;

/** Size of an event id in a record. */
export const EVENT_ID_BYTES = 16;

/** Keys come from clients; the seed keeps them from choosing keys that collide. */
const SEED = Math.trunc(Math.random() * 2 ** 32);

/** The key being looked up, and its hash. Lookups are synchronous, so one is enough. */
let bytes = Buffer.allocUnsafe(FIRST_KEY_BYTES);
let size = 0;
let hash = 0;
let encoded: [first: string, second: string] | null = null;

/** Encodes the key `first second`, unless it is the one encoded last. */
function encode(first: string, second: string): void {
  if (encoded !== null && encoded[0] === first && encoded[1] === second) return;
  const bytesMax = 3 * (first.length + second.length) + 1;
  if (bytes.length < bytesMax) bytes = Buffer.allocUnsafe(bytesMax);
  size = put(first, 0);
  bytes[size++] = SPACE;
  size = put(second, size);
  let mixed = SEED;
  for (let at = 0; at < size; at++) mixed = Math.imul(mixed ^ bytes[at]!, 0x01000193);
  mixed = Math.imul(mixed ^ mixed >>> 16, 0x85ebca6b);
  hash = (Math.imul(mixed ^ mixed >>> 13, 0xc2b2ae35) ^ mixed >>> 16) >>> 0;
  encoded = [first, second];
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

class Block {
  keys: Buffer = Buffer.allocUnsafeSlow(FIRST_KEY_BYTES);
  /** End of each entry's key; it starts where the key before ends. */
  ends: Uint32Array = new Uint32Array(FIRST_BLOCK_ENTRIES);
  hashes: Uint32Array = new Uint32Array(FIRST_BLOCK_ENTRIES);
  records: Buffer;
  readonly #recordBytes: number;

  constructor(recordBytes: number) {
    this.#recordBytes = recordBytes;
    this.records = Buffer.alloc(FIRST_BLOCK_ENTRIES * recordBytes);
  }

  get sizeBytes(): number {
    const { keys, ends, hashes, records } = this;
    return keys.length + ends.byteLength + hashes.byteLength + records.length;
  }

  /** Adds the encoded key as entry `at`. */
  add(at: number): void {
    if (at === this.ends.length) {
      const entries = Math.min(4 * at, BLOCK_ENTRIES);
      this.ends = grown(new Uint32Array(entries), this.ends);
      this.hashes = grown(new Uint32Array(entries), this.hashes);
      this.records = grown(Buffer.alloc(entries * this.#recordBytes), this.records);
    }
    const start = this.startOf(at);
    const end = start + size;
    const isLast = at === BLOCK_ENTRIES - 1;
    // The keys of a full block take no more than they need.
    if (end > this.keys.length || isLast) {
      const keys = Buffer.allocUnsafeSlow(isLast ? end : Math.ceil(end * 1.5));
      keys.set(this.keys.subarray(0, start));
      this.keys = keys;
    }
    this.keys.set(bytes.subarray(0, size), start);
    this.ends[at] = end;
    this.hashes[at] = hash;
  }

  startOf(at: number): number {
    return at === 0 ? 0 : this.ends[at - 1]!;
  }

  /** Whether entry `at` has the encoded key. */
  holds(at: number): boolean {
    const { keys } = this;
    const start = this.startOf(at);
    if (this.hashes[at] !== hash || this.ends[at]! - start !== size) return false;
    for (let byte = 0; byte < size; byte++) {
      if (keys[start + byte] !== bytes[byte]) return false;
    }
    return true;
  }
}

function grown<Values extends Uint32Array | Buffer>(values: Values, before: Values): Values {
  values.set(before);
  return values;
}

/** The record of an entry: `bytes` from `at` on. */
export interface RecordPlace {
  bytes: Buffer;
  at: number;
}

export class KeyTable {
  readonly #recordBytes: number;
  readonly #blocks: Block[] = [];
  #slots = new Uint32Array(SLOTS_MIN);
  #count = 0;
  #fullBlocksBytes = 0;

  constructor(recordBytes: number) {
    this.#recordBytes = recordBytes;
  }

  /** Number of entries. */
  get count(): number {
    return this.#count;
  }

  /** Memory of the keys, the records and the table. */
  get sizeBytes(): number {
    return this.#fullBlocksBytes + (this.#blocks.at(-1)?.sizeBytes ?? 0) + this.#slots.byteLength;
  }

  /** Returns the number of the entry with the key `first second`; -1 if there is none. */
  find(first: string, second: string): number {
    encode(first, second);
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask;; slot = slot + 1 & mask) {
      const number = this.#slots[slot]! - 1;
      if (number < 0) return -1;
      if (this.#blocks[number >>> BLOCK_BITS]!.holds(number % BLOCK_ENTRIES)) return number;
    }
  }

  /** Adds a key that is not in the table; returns its number. The record consists of zeros. */
  add(first: string, second: string): number {
    encode(first, second);
    const number = this.#count++;
    const at = number % BLOCK_ENTRIES;
    if (at === 0) {
      this.#fullBlocksBytes += this.#blocks.at(-1)?.sizeBytes ?? 0;
      this.#blocks.push(new Block(this.#recordBytes));
    }
    this.#blocks.at(-1)!.add(at);
    if (this.#count * 3 > this.#slots.length * 2) this.#growSlots();
    else this.#fill(hash, number);
    return number;
  }

  keyOf(number: number): string {
    const block = this.#blocks[number >>> BLOCK_BITS]!;
    const at = number % BLOCK_ENTRIES;
    return block.keys.toString("utf8", block.startOf(at), block.ends[at]);
  }

  /** Returns an entry's record, valid until the next `add()`. */
  recordOf(number: number): RecordPlace {
    const { records } = this.#blocks[number >>> BLOCK_BITS]!;
    return { bytes: records, at: number % BLOCK_ENTRIES * this.#recordBytes };
  }

  #growSlots(): void {
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (let number = 0; number < this.#count; number++) {
      this.#fill(this.#blocks[number >>> BLOCK_BITS]!.hashes[number % BLOCK_ENTRIES]!, number);
    }
  }

  #fill(hash: number, number: number): void {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    while (this.#slots[slot] !== 0) slot = slot + 1 & mask;
    this.#slots[slot] = number + 1;
  }
}

/** Writes the bytes of lowercase hex digits at `at`; skips hyphens. */
export function writeHex(into: Uint8Array, at: number, text: string): void {
  for (let place = 0; place < text.length; place += 2) {
    if (text.charCodeAt(place) === HYPHEN) place += 1;
    into[at++] = DIGIT_VALUES[text.charCodeAt(place)]! << 4 |
      DIGIT_VALUES[text.charCodeAt(place + 1)]!;
  }
}

/** Returns the event id whose bytes are at `at`. */
export function readEventId(from: Buffer, at: number): string {
  const hex = from.toString("hex", at, at + EVENT_ID_BYTES);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-` +
    hex.slice(20);
}
