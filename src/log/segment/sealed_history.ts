/**
 * All segments in a log. Batches, frontiers, streams and keys are found through the indexes of runs
 * of segments, and through the segments' own indexes where no run has been merged yet. Files are
 * opened on first use, and the memory of filters and caches is bounded.
 *
 * Invariant: the parts cover each segment once. An index of a run that can't be read is replaced by
 * those of its segments, which the lookup asks instead.
 */
import { firstIndex } from "../../first_index.ts";
import { type Maybe, whenKnown } from "../../maybe.ts";
import { sumOf } from "../../sum.ts";
import type { EventFilter } from "../line/stored_line.ts";
import type { MergeInput } from "../index/index_merge.ts";
import { type IndexReader, runIndex, type TableName } from "../index/index_reader.ts";
import { batchHash, filterHashes, type KeyHash, streamHash } from "../index/key_hash.ts";
import { chooseRuns, mergeable, type Run, runOf } from "../index/run_plan.ts";
import { sourceKey } from "../index/stream_blocks.ts";
import { openListedFile, TableCache } from "../index/table_cache.ts";
import {
  mergedStreams,
  type StreamEntry,
  streamKey,
  type StreamSource,
} from "../read/stream_counts.ts";
import type { LogFile, SealedFile } from "../read/snapshot.ts";
import { INDEX_FOLDER, isIndexName } from "../storage/file_names.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { errorCode, removeIfThere, type Storage } from "../storage/storage.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import type { RowGroupDecoder } from "./row_group_decoder.ts";
import type { SegmentEntry } from "./manifest.ts";
import { findBatch, Segment } from "./segment_reader.ts";
import { RowGroupCache } from "./row_group_cache.ts";

/** Number of files whose sizes are checked concurrently. The checks mostly wait for I/O. */
const CHECKED_AT_ONCE = 16;

/** Memory for filters: those of a log of 10^9 batches. Without one, a lookup reads a page. */
const FILTERS_BYTES_MAX: number = 256 * 1024 * 1024;

export interface SealedHistoryOptions {
  /** Reports each damaged index once. */
  report?: (line: string) => void;
  filtersBytesMax?: number;
  /** Decodes row groups into lines; closed with the history. */
  decoder?: RowGroupDecoder | undefined;
}

/** Number of indexes at which merging is most urgent. Usually 10 to 25 are left. */
const PARTS_MAX = 512;

/** Consecutive segments with one index: a run, or a single segment at level 0. */
interface Part extends Pick<Run, "level" | "first" | "count"> {
  index: IndexReader;
}

/** Indexes to merge into that of a run. Can be sent between threads. */
export interface MergePlan {
  run: Run;
  /** How much there is to merge, as `Sealer.backlog`. */
  backlog: number;
  /** `ordinal` is that of an input's first segment in the run; for `coverage`, see `Trailer`. */
  inputs: { path: string; ordinal: number; coverage: string }[];
}

export class SealedHistory {
  /** Called when the index of a run turns out to be damaged, so that it is made again. */
  onLoss: () => void = () => {};
  readonly #storage: Storage;
  readonly #tables: TableCache;
  readonly #rowGroups: RowGroupCache;
  readonly #report: (line: string) => void;
  readonly #filtersBytesMax: number;
  /** Oldest first, as are the arrays below, which are replaced and never changed. */
  #segments: readonly Segment[] = [];
  #entries: readonly SegmentEntry[] = [];
  #parts: readonly Part[] = [];
  /**
   * For each filter in use, by part: for each segment, 1 if it may match, or 0; null if all may. A
   * set of numbers would be 20 times as large, and each of 4,096 followers may keep one.
   */
  readonly #located = new WeakMap<EventFilter, Map<Part, Promise<Uint8Array | null>>>();
  /** Runs whose segments have a damaged index. */
  readonly #givenUp = new Set<string>();
  /** Index files that are not in use. */
  #leftovers: readonly string[] = [];

  constructor(
    storage: Storage,
    { report = () => {}, filtersBytesMax = FILTERS_BYTES_MAX, decoder }: SealedHistoryOptions = {},
  ) {
    this.#tables = new TableCache(storage);
    this.#rowGroups = new RowGroupCache(decoder);
    this.#storage = storage;
    this.#report = report;
    this.#filtersBytesMax = filtersBytesMax;
  }

  /** The segments as readers see them, oldest first. `add()` replaces the array. */
  get files(): readonly SealedFile[] {
    return this.#segments;
  }

  /** Last event in the last segment; null if there is none. */
  get lastEventId(): string | null {
    return this.#segments.at(-1)?.lastEventId ?? null;
  }

  add(entries: readonly SegmentEntry[]): void {
    const first = this.#segments.length;
    const added = entries.map((entry, place) => {
      const mayMatch = (filter: EventFilter) => this.#mayMatch(first + place, filter);
      return new Segment(entry, this.#tables, this.#rowGroups, this.#report, mayMatch);
    });
    this.#entries = [...this.#entries, ...entries];
    this.#segments = [...this.#segments, ...added];
    this.#parts = [...this.#parts, ...this.#segmentParts(first, added.length)];
  }

  /**
   * Appends the segments in a manifest. To keep startup fast, checks only that each file exists
   * with the expected size, and that the last segment, where history continues, has a valid footer.
   * @throws {CorruptLogError} for the first file that is missing or differs.
   */
  async open(entries: readonly SegmentEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += CHECKED_AT_ONCE) {
      const group = entries.slice(start, start + CHECKED_AT_ONCE);
      const checks = await Promise.allSettled(
        group.map(async (entry) => await (await openListedFile(this.#storage, entry)).close()),
      );
      const failed = checks.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    }
    this.add(entries);
    await this.#segments.at(-1)?.footer();
    await this.#openRuns();
  }

  /** Returns the last sealed event from a source; null if it has none. @throws {CorruptLogError} */
  sourceFrontier(source: string): Maybe<string | null> {
    return this.#findFrontier(sourceKey(source));
  }

  /** Returns the last sealed event in a stream; null if it has none. @throws {CorruptLogError} */
  streamFrontier(source: string, stream: string): Maybe<string | null> {
    return this.#findFrontier(streamKey(source, stream));
  }

  /** Returns the sealed batch with this identity, or null. @throws {CorruptLogError} */
  findBatch(source: string, batchId: string): Maybe<BatchEntry | null> {
    if (this.#parts.length === 0) return null;
    const hash = batchHash(source, batchId);
    const find = (part: Part) => this.#segmentsWith(part, "identities", hash);
    return this.#ask(this.#parts, hash, find, (numbers) => {
      return numbers.length === 0 ? null : this.#findBatchIn(numbers, source, batchId);
    });
  }

  /** The streams of all segments, in parts. They also list sources; see `isSourceKey()`. */
  streamSources(): StreamSource[] {
    return this.#sourcesOf(this.#parts);
  }

  /**
   * Returns the streams of all segments before the one with an event, and that one; null if all
   * sealed events precede the event.
   */
  streamsThrough(eventId: string): { before: StreamSource[]; file: LogFile } | null {
    const files = this.#segments;
    const number = firstIndex(files.length, (place) => files[place]!.lastEventId >= eventId);
    if (number === files.length) return null;
    const parts = this.#parts.filter(({ first, count }) => first + count <= number);
    const last = parts.at(-1);
    const first = last === undefined ? 0 : last.first + last.count;
    const before = this.#sourcesOf([...parts, ...this.#segmentParts(first, number - first)]);
    return { before, file: files[number]! };
  }

  /** An index file to remove, of which no lookup needs anything; null if there is none. */
  get leftover(): string | null {
    return this.#leftovers[0] ?? null;
  }

  async removeLeftover(): Promise<void> {
    const [path, ...others] = this.#leftovers;
    this.#leftovers = others;
    this.#tables.forget(path!);
    await removeIfThere(this.#storage, path!);
  }

  /** Returns the next merge that is due; null if there is none. */
  nextMerge(): MergePlan | null {
    for (const parts of mergeable(this.#parts)) {
      const { level, first } = parts[0]!;
      const run = runOf(this.#entries, level + 1, first);
      if (this.#givenUp.has(run.path)) continue;
      const inputs = parts.map(({ index, first: number }) => ({
        path: index.name,
        ordinal: number - first,
        coverage: index.coverage,
      }));
      return { run, backlog: this.#parts.length / PARTS_MAX, inputs };
    }
    return null;
  }

  /** Makes a damaged input again if it is a run; else the merge waits for the next start. */
  giveUpMerge({ path }: Run, damage: CorruptLogError): void {
    const isDamaged = (path: string) => damage.message.startsWith(`${path}: `);
    const part = this.#parts.find(({ level, index }) => level > 0 && isDamaged(index.name));
    if (part !== undefined) return void this.#lose(part, damage);
    // A lookup has found the damage during the merge.
    if (this.#leftovers.some(isDamaged)) return;
    this.#givenUp.add(path);
    this.#report(`${path}: not merged until the next start: ${damage.message}`);
  }

  /** Switches lookups to the index of a run, which is durable. Its inputs become leftovers. */
  useRun(run: Run): void {
    const isCovered = ({ first }: Part) => first >= run.first && first < run.first + run.count;
    const covered = this.#parts.filter(isCovered);
    const place = this.#parts.findIndex(isCovered);
    const { level, first, count } = run;
    const index = runIndex(this.#tables, run.path, run.coverage);
    this.#parts = this.#parts.toSpliced(place, covered.length, { level, first, count, index });
    for (const { index } of covered) index.unloadFilter();
    const paths = covered.filter(({ level }) => level > 0).map(({ index }) => index.name);
    this.#leftovers = [...this.#leftovers, ...paths];
  }

  /** The own indexes of the segments in a run. */
  indexesOf({ first, count }: Run): MergeInput[] {
    return this.#segmentParts(first, count).map(({ index }, ordinal) => ({ index, ordinal }));
  }

  async close(): Promise<void> {
    await this.#tables.close();
    await this.#rowGroups.decoder.close();
  }

  async #openRuns(): Promise<void> {
    const names = (await this.#storage.list(INDEX_FOLDER) ?? []).filter(isIndexName);
    const paths = new Set(names.map((name) => `${INDEX_FOLDER}/${name}`));
    for (const run of chooseRuns(this.#entries, paths)) {
      this.useRun(run);
      paths.delete(run.path);
    }
    this.#leftovers = [...paths];
  }

  #segmentParts(first: number, count: number): Part[] {
    const segments = this.#segments.slice(first, first + count);
    return segments.map(({ index }, place) => ({
      level: 0,
      first: first + place,
      count: 1,
      index,
    }));
  }

  #sourcesOf(parts: readonly Part[]): StreamSource[] {
    return parts.map((part) => ({ blocks: (from) => this.#streamsOf(part, from) }));
  }

  async *#streamsOf(part: Part, from: string): AsyncGenerator<readonly StreamEntry[], void> {
    let next = from;
    try {
      for await (const block of part.index.blocks(from)) {
        yield block;
        next = block.at(-1)!.key + "\0";
      }
    } catch (cause) {
      yield* mergedStreams(this.#sourcesOf(this.#lose(part, cause)), next);
    }
  }

  #findFrontier(key: string): Maybe<string | null> {
    if (this.#parts.length === 0) return null;
    const find = ({ index }: Part) => index.entry(key);
    return this.#ask(this.#parts, streamHash(key), find, (entry) => entry?.lastEventId ?? null);
  }

  async #findBatchIn(
    numbers: readonly number[],
    source: string,
    batchId: string,
  ): Promise<BatchEntry | null> {
    for (const number of numbers) {
      const entry = await findBatch(this.#segments[number]!, source, batchId);
      if (entry !== null) return entry;
    }
    return null;
  }

  /**
   * Asks the indexes of these parts about a key, newest first, until `use` makes an answer of what
   * one has found. If the index of a run can't be read, those of its segments are asked. For a new
   * batch, every part is asked, without a promise unless a file is read in the thread pool.
   */
  #ask<Found, Answer>(
    parts: readonly Part[],
    hash: KeyHash,
    find: (part: Part) => Maybe<Found>,
    use: (found: Found) => Maybe<Answer | null>,
  ): Maybe<Answer | null> {
    for (let place = parts.length - 1; place >= 0; place--) {
      const part = parts[place]!;
      const isHeld = part.index.mayHold(hash);
      if (isHeld === false) continue;
      const answer = whenKnown(
        this.#found(part, isHeld ?? this.#mayHold(part, hash), find),
        (found) => {
          if ("lost" in found) return this.#ask(this.#lose(part, found.lost), hash, find, use);
          return found.value === null ? null : use(found.value);
        },
      );
      if (answer instanceof Promise) {
        const others = parts.slice(0, place);
        return answer.then((known) => known ?? this.#ask(others, hash, find, use));
      }
      if (answer !== null) return answer;
    }
    return null;
  }

  /** Returns what a part's index says, null if the key is not held, or why it can't be read. */
  #found<Found>(
    part: Part,
    isHeld: Maybe<boolean>,
    find: (part: Part) => Maybe<Found>,
  ): Maybe<{ value: Found | null } | { lost: unknown }> {
    try {
      const found = whenKnown(isHeld, (held) => held ? find(part) : null);
      if (!(found instanceof Promise)) return { value: found };
      return found.then((value) => ({ value }), (lost) => ({ lost }));
    } catch (lost) {
      return { lost };
    }
  }

  /** Loads the filter of a part into memory if there is room; true if there is none. */
  async #mayHold({ level, first, index }: Part, hash: KeyHash): Promise<boolean> {
    try {
      const open = await index.open();
      if (index.loadedBytes > 0) return true;
      if (open.filterBytes === 0 || !this.#makeRoom(index, open.filterBytes)) return true;
      await index.loadFilter(open);
    } catch (cause) {
      if (level > 0) throw cause;
      this.#segments[first]!.reportDamage(cause);
    }
    return index.mayHold(hash) ?? true;
  }

  /** Whether there is room for a filter. Any filter saves a read, so the largest one makes room. */
  #makeRoom(asking: IndexReader, filterBytes: number): boolean {
    const indexes = this.#parts.map(({ index }) => index);
    // A lookup may go on with an index that was merged meanwhile, which counts no more.
    if (!indexes.includes(asking)) return false;
    const usedBytes = sumOf(indexes, ({ loadedBytes }) => loadedBytes);
    if (usedBytes + filterBytes <= this.#filtersBytesMax) return true;
    const largest = indexes.reduce((one, other) =>
      one.loadedBytes < other.loadedBytes ? other : one
    );
    if (largest.loadedBytes <= filterBytes) return false;
    largest.unloadFilter();
    return true;
  }

  /** Returns the segments of a part that may have a key, newest first. */
  #segmentsWith({ level, first, count, index }: Part, table: TableName, hash: KeyHash) {
    if (level === 0) return [first];
    return whenKnown(index.find(table, hash), (ordinals) => {
      const within = ordinals.filter((ordinal) => ordinal < count);
      return within.map((ordinal) => first + ordinal).reverse();
    });
  }

  /**
   * Replaces the index of a run that can't be read by those of its segments, which it returns.
   * @throws the error if it is not damage, or that of a segment.
   */
  #lose(part: Part, cause: unknown): Part[] {
    const isDamage = cause instanceof CorruptLogError || errorCode(cause) === "EIO";
    if (part.level === 0 || !isDamage) throw cause;
    const segments = this.#segmentParts(part.first, part.count);
    const place = this.#parts.indexOf(part);
    // A lookup may have begun before the run was merged into a larger one.
    if (place >= 0) {
      this.#parts = this.#parts.toSpliced(place, 1, ...segments);
      this.#leftovers = [...this.#leftovers, part.index.name];
      const { message } = cause as Error;
      this.#report(`${message}; lookups read the segments' own indexes until it is made again`);
      this.onLoss();
    }
    return segments;
  }

  /** Whether a segment may have matches, according to the index of its run. */
  async #mayMatch(number: number, filter: EventFilter): Promise<boolean> {
    const parts = this.#parts;
    const part = parts[firstIndex(parts.length, (place) => parts[place]!.first > number) - 1]!;
    if (part.level === 0) return true;
    const located = this.#located.get(filter) ?? new Map();
    this.#located.set(filter, located);
    const locating: Promise<Uint8Array | null> = located.get(part) ?? this.#locate(part, filter);
    located.set(part, locating);
    return (await locating)?.[number - part.first] !== 0;
  }

  /** Returns which segments of a part may have matches; null if all may. */
  async #locate(part: Part, filter: EventFilter): Promise<Uint8Array | null> {
    const hashes = filterHashes(filter);
    if (hashes.length === 0) return null;
    /** For each segment, how many of the hashes it has, from the first on. */
    const found = new Uint8Array(part.count);
    try {
      for (const [place, hash] of hashes.entries()) {
        for (const number of await this.#segmentsWith(part, "locations", hash)) {
          if (found[number - part.first] === place) found[number - part.first] = place + 1;
        }
      }
    } catch (cause) {
      this.#lose(part, cause);
      return null;
    }
    return found.map((count) => Number(count === hashes.length));
  }
}
