/**
 * Finds a batch that a log holds twice, in whatever files, in bounded memory: sorts 64 bits of the
 * SHA-256 of each `(source, batch_id)`. Batches with equal hashes are read again and compared.
 *
 * When a log has too many batches, they are read in several passes, each of which collects the
 * hashes with one remainder.
 */
import { assert } from "../../assert.ts";
import { quoteString } from "../../event/json/quote_string.ts";
import { sha256Hex } from "../../event/hash.ts";
import { firstIndex } from "../../first_index.ts";
import { BATCH_COLUMNS, batchRuns } from "../segment/segment_batches.ts";
import { openSegment } from "../segment/segment_reader.ts";
import type { Storage } from "../storage/storage.ts";
import { CommitReader } from "../wal/commit_reader.ts";
import { VerifyFailure } from "./failure.ts";
import type { BatchIdentity } from "./history_check.ts";
import type { Inventory } from "./inventory.ts";

/** Hashes in memory at a time: 64 MiB, and half as much again while they grow. */
const HASHES_MAX = 8 * 1024 * 1024;
const HASHES_MIN = 1024;

/** Planned load of a pass; some remainders are more frequent than others. */
const PASS_SHARE = 0.9;

/** Hex digits of a SHA-256 that are kept. */
const HASH_DIGITS = 16;

/** Equal for batches with the same identity. */
export function batchHash({ source, batch_id }: BatchIdentity): bigint {
  return BigInt("0x" + sha256Hex(`${source}\n${batch_id}`).slice(0, HASH_DIGITS));
}

interface FoundBatch extends BatchIdentity {
  path: string;
  /** Number of batches before it. */
  place: number;
}

export class DuplicateBatches {
  readonly #storage: Storage;
  readonly #inventory: Inventory;
  readonly #hashesMax: number;
  #hashes = new BigUint64Array(HASHES_MIN);
  #length = 0;
  /** Batches so far, perhaps more than hashes. */
  #batches = 0;

  /** @param hashesMax bounds the memory. */
  constructor(storage: Storage, inventory: Inventory, hashesMax: number = HASHES_MAX) {
    this.#storage = storage;
    this.#inventory = inventory;
    this.#hashesMax = hashesMax;
  }

  /** Adds the hash of the next batch of the log. */
  add(hash: bigint): void {
    this.#batches += 1;
    if (this.#length < this.#hashesMax) this.#put(hash);
  }

  /** Finds the first batch in log order that repeats an earlier one. Called once, after `add()`. */
  async find(): Promise<VerifyFailure | null> {
    const passes = this.#batches <= this.#hashesMax
      ? 1
      : Math.ceil(this.#batches / (PASS_SHARE * this.#hashesMax));
    let found: FoundBatch | null = null;
    for (let pass = 0; pass < passes; pass++) {
      const end: number = found?.place ?? this.#batches;
      if (passes > 1) await this.#collect(pass, passes, end);
      found = await this.#firstRepeated(end) ?? found;
    }
    if (found === null) return null;
    const { source, batch_id, path } = found;
    const what = `batch ${spelled(batch_id)} of source ${spelled(source)} is there once more`;
    return new VerifyFailure("idempotency_invalid", what, { path });
  }

  async #collect(pass: number, passes: number, end: number): Promise<void> {
    this.#length = 0;
    for await (const batch of this.#read(end)) {
      const hash = batchHash(batch);
      if (hash % BigInt(passes) === BigInt(pass)) this.#put(hash);
    }
  }

  #put(hash: bigint): void {
    if (this.#length === this.#hashes.length) {
      assert(this.#length < this.#hashesMax, "a pass has room for its hashes");
      const smaller = this.#hashes;
      this.#hashes = new BigUint64Array(Math.min(2 * smaller.length, this.#hashesMax));
      this.#hashes.set(smaller);
    }
    this.#hashes[this.#length++] = hash;
  }

  /** The first of `end` batches that repeats an earlier one, by the hashes of this pass. */
  async #firstRepeated(end: number): Promise<FoundBatch | null> {
    const repeated = repeatedHashes(this.#hashes.subarray(0, this.#length));
    if (repeated.length === 0) return null;
    const isSeen = new Uint8Array(repeated.length);
    for await (const batch of this.#read(end)) {
      const at = placeOf(repeated, batchHash(batch));
      if (at < 0) continue;
      if (isSeen[at] === 1 && await this.#isEarlier(batch)) return batch;
      isSeen[at] = 1;
    }
    return null;
  }

  async #isEarlier({ source, batch_id, place }: FoundBatch): Promise<boolean> {
    for await (const earlier of this.#read(place)) {
      if (earlier.source === source && earlier.batch_id === batch_id) return true;
    }
    return false;
  }

  /** The first `end` batches of the log. */
  async *#read(end: number): AsyncGenerator<FoundBatch, void> {
    let place = 0;
    if (end === 0) return;
    for await (const batch of readBatches(this.#storage, this.#inventory)) {
      yield { ...batch, place };
      place += 1;
      // The rest may be damaged.
      if (place === end) return;
    }
  }
}

type ReadBatch = Omit<FoundBatch, "place">;

async function* readBatches(
  storage: Storage,
  { manifest, pending, tail }: Inventory,
): AsyncGenerator<ReadBatch, void> {
  for (const { path } of manifest.segments) yield* readSegment(storage, path);
  for (const { path, file, sizeBytes } of tail === null ? pending : [...pending, tail]) {
    const reader = new CommitReader(file, 0, sizeBytes);
    for (let next = await reader.next(); next !== null; next = await reader.next()) {
      for (const { source, batch_id } of next.commit.batches) yield { source, batch_id, path };
    }
  }
}

async function* readSegment(storage: Storage, path: string): AsyncGenerator<ReadBatch, void> {
  const segment = await openSegment(storage, path);
  try {
    let last: BatchIdentity | null = null;
    const rowGroups = await segment.rowGroups();
    for (const [number, { rows }] of rowGroups.entries()) {
      const columns = await segment.readColumns(number, BATCH_COLUMNS);
      for (const { source, batch_id } of batchRuns(columns, rows)) {
        // A batch may continue in the next row group.
        const goesOn: boolean = last?.batch_id === batch_id && last.source === source;
        last = { source, batch_id };
        if (!goesOn) yield { ...last, path };
      }
    }
  } finally {
    await segment.close();
  }
}

/** Sorts hashes; returns those that occur more than once, each once, in the same memory. */
function repeatedHashes(hashes: BigUint64Array): BigUint64Array {
  hashes.sort();
  let length = 0;
  for (let at = 1; at < hashes.length; at++) {
    const hash = hashes[at]!;
    const isRepeated = hash === hashes[at - 1] && (length === 0 || hash !== hashes[length - 1]);
    if (isRepeated) hashes[length++] = hash;
  }
  return hashes.subarray(0, length);
}

/** Index of a hash in sorted ones; -1 when absent. */
function placeOf(sorted: BigUint64Array, hash: bigint): number {
  const place = firstIndex(sorted.length, (index) => sorted[index]! >= hash);
  return sorted[place] === hash ? place : -1;
}

function spelled(text: string): string {
  return quoteString(text.toWellFormed());
}
