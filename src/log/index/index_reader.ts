/**
 * Reads an index, of a segment or of a run of segments. Its trailer and directories are cached, and
 * a lookup then reads one page, or the blocks of one path through the stream tree. Every part is
 * checked against its CRC-32.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { firstIndex } from "../../first_index.ts";
import { type Maybe, whenKnown } from "../../maybe.ts";
import { KeyFilter } from "../line/key_filter.ts";
import type { StreamEntry, StreamSource } from "../read/stream_counts.ts";
import type { FileRange } from "../storage/storage.ts";
import { ENTRY_BYTES, highWord, joined, ORDINALS_MAX } from "./entries.ts";
import {
  CRC_BYTES,
  decodeTrailer,
  IndexError,
  type Layout,
  NO_COVERAGE,
  PAGE_BYTES,
  PAGE_CRC_START,
  PAGE_ENTRIES,
  pagesOf,
  TRAILER_BYTES,
} from "./index_format.ts";
import { KEY_HASHES, type KeyHash } from "./key_hash.ts";
import {
  decodeChildren,
  decodeStreams,
  STREAM_BLOCK_BYTES_MAX,
  type StreamBlock,
} from "./stream_blocks.ts";
import type { TableCache, TableFile } from "./table_cache.ts";

/** Filter bytes read and checked at once, so that loading a large filter lets other clients run. */
const FILTER_READ_BYTES = 1024 * 1024;

/** `identities`: batches, streams of a source and sources. `locations`: keys, streams of any. */
export type TableName = "identities" | "locations";

/** An index whose trailer and directories were read. `start` and `end` are places in the file. */
interface OpenIndex extends Layout, FileRange {
  /** The first word of each page. */
  directories: Record<TableName, Uint32Array>;
}

/** The index of a run, which is a file of its own. @param coverage see `Trailer`. */
export function runIndex(tables: TableCache, path: string, coverage: string): IndexReader {
  const file = tables.file({ path });
  const locate = async () => ({ start: 0, end: await file.size() });
  return new IndexReader(tables, path, file, locate, coverage);
}

export class IndexReader implements StreamSource {
  /** The path of the file. */
  readonly name: string;
  /** The segments that it must cover; see `Trailer`. */
  readonly coverage: string;
  readonly #tables: TableCache;
  readonly #file: TableFile;
  readonly #locate: () => Promise<FileRange>;
  #filter: KeyFilter | null = null;
  #loading: Promise<void> | null = null;
  #loadedBytes = 0;

  /** @param locate returns where the index is in the file. */
  constructor(
    tables: TableCache,
    name: string,
    file: TableFile,
    locate: () => Promise<FileRange>,
    coverage: string = NO_COVERAGE,
  ) {
    this.#tables = tables;
    this.name = name;
    this.#file = file;
    this.#locate = locate;
    this.coverage = coverage;
  }

  /** Returns the sizes and places of the parts. @throws {IndexError} */
  open(): Maybe<OpenIndex> {
    return this.#file.parsed("index", async () => {
      const range = await this.#locate();
      const sizeBytes = range.end - range.start;
      const directoriesEnd = sizeBytes - TRAILER_BYTES;
      const bytes = await this.#read(range, directoriesEnd, TRAILER_BYTES);
      const decode = () => decodeTrailer(bytes, sizeBytes);
      const layout = this.#named(decode, `the index trailer at byte ${range.end - TRAILER_BYTES} `);
      const { directoriesStart, identities, directoriesCrc, coverage } = layout;
      if (coverage !== this.coverage) {
        throw new IndexError(`${this.name}: covers other segments, ${coverage}`);
      }
      const words = await this.#read(range, directoriesStart, directoriesEnd - directoriesStart);
      if (crc32(words) !== directoriesCrc) throw this.#damaged("the directory", directoriesStart);
      const all = new Uint32Array(words.buffer, words.byteOffset, words.length / 4);
      const split = pagesOf(identities);
      const directories = { identities: all.subarray(0, split), locations: all.subarray(split) };
      return { ...layout, ...range, directories };
    });
  }

  /** Memory of the filter, also while it is being loaded. */
  get loadedBytes(): number {
    return this.#loadedBytes;
  }

  /** Whether `identities` may contain a key; undefined if no filter is in memory. */
  mayHold(hash: KeyHash): boolean | undefined {
    return this.#filter?.mayHold(highWord(hash), hash % ORDINALS_MAX * ORDINALS_MAX);
  }

  /** Loads the filter into memory, once. @throws {IndexError} */
  loadFilter(open: OpenIndex): Promise<void> {
    return this.#loading ??= this.#load(open).catch((error) => {
      // Damage stays; another failure may not.
      if (error instanceof IndexError) this.#loadedBytes = 0;
      else this.unloadFilter();
      throw error;
    });
  }

  async #load(open: OpenIndex): Promise<void> {
    const { filterStart, filterBytes, filterCrc, batches, streams } = open;
    this.#loadedBytes = filterBytes;
    const filter = Buffer.allocUnsafeSlow(filterBytes);
    let crc = 0;
    for (let at = 0; at < filterBytes; at += FILTER_READ_BYTES) {
      const piece = filter.subarray(at, at + FILTER_READ_BYTES);
      await this.#readInto(piece, open, filterStart + at);
      crc = crc32(piece, crc);
    }
    if (crc !== filterCrc) throw this.#damaged("the filter", filterStart);
    if (this.#loadedBytes > 0) this.#filter = new KeyFilter(filter, batches + streams);
  }

  /** Frees the memory of the filter, which `loadFilter()` may load again. */
  unloadFilter(): void {
    this.#filter = null;
    this.#loading = null;
    this.#loadedBytes = 0;
  }

  /** Returns the ordinals in the entries of a key, in order. @throws {IndexError} */
  find(table: TableName, hash: KeyHash): Maybe<number[]> {
    return whenKnown(this.readEntries(table, hash, hash + 1), (entries) => {
      const halves = new Uint16Array(entries.buffer, entries.byteOffset, 4 * entries.length);
      return Array.from(entries, (_, place) => halves[4 * place]!);
    });
  }

  /** Returns the entries whose hashes are in [from, to). @throws {IndexError} */
  readEntries(table: TableName, from: KeyHash, to: KeyHash): Maybe<BigUint64Array> {
    return whenKnown(this.open(), (open) => {
      const words = open.directories[table];
      const low = highWord(from);
      // A page that starts with this word may follow one that ends with it.
      const first = Math.max(0, firstIndex(words.length, (page) => words[page]! >= low) - 1);
      const last = to >= KEY_HASHES
        ? words.length
        : firstIndex(words.length, (page) => words[page]! > highWord(to - 1));
      if (first >= last) return new BigUint64Array();
      const tableStart = table === "identities" ? open.identitiesStart : open.locationsStart;
      const start = tableStart + PAGE_BYTES * first;
      return whenKnown(this.#read(open, start, PAGE_BYTES * (last - first)), (pages) => {
        const found: BigUint64Array[] = [];
        for (let page = first; page < last; page++) {
          const at = PAGE_BYTES * (page - first);
          const bytes = pages.subarray(at, at + PAGE_BYTES);
          if (crc32(bytes.subarray(0, PAGE_CRC_START)) !== bytes.readUInt32LE(PAGE_CRC_START)) {
            throw this.#damaged("the page", start + at);
          }
          const count = Math.min(PAGE_ENTRIES, open[table] - PAGE_ENTRIES * page);
          const placeOf = (hash: KeyHash) =>
            firstIndex(count, (place) => bytes.readUIntLE(ENTRY_BYTES * place + 2, 6) >= hash);
          const entries = new BigUint64Array(bytes.buffer, bytes.byteOffset, count);
          found.push(entries.subarray(placeOf(from), placeOf(to)));
        }
        return found.length === 1 ? found[0]! : joined(found);
      });
    });
  }

  /** Returns the entry for a stream or source; null if there is none. @throws {IndexError} */
  async entry(key: string): Promise<StreamEntry | null> {
    for await (const [first] of this.blocks(key)) return first?.key === key ? first : null;
    return null;
  }

  /** Yields the streams and sources from a key on. @throws {IndexError} */
  async *blocks(from: string): AsyncGenerator<readonly StreamEntry[], void> {
    const { treeBytes, rootBytes, height } = await this.open();
    const start = treeBytes - rootBytes;
    yield* this.#walk({ start, bytes: rootBytes }, height - 1, from);
  }

  async *#walk(
    block: StreamBlock,
    height: number,
    from: string,
  ): AsyncGenerator<readonly StreamEntry[], void> {
    if (height === 0) {
      const rows = await this.#block(block, decodeStreams);
      const first = firstIndex(rows.length, (place) => rows[place]!.key >= from);
      if (first < rows.length) yield first === 0 ? rows : rows.slice(first);
      return;
    }
    const rows = await this.#block(block, decodeChildren);
    const first = firstIndex(rows.length, (place) => rows[place]!.key >= from);
    for (const child of rows.slice(first)) yield* this.#walk(child, height - 1, from);
  }

  async #block<Row extends { key: string }>(
    { start, bytes }: StreamBlock,
    decode: (bytes: Buffer) => readonly Row[],
  ): Promise<readonly Row[]> {
    const rows = await this.#tables.blocks.load(`${this.name} ${start}`, async () => {
      const open = await this.open();
      if (start + bytes > open.treeBytes || bytes > STREAM_BLOCK_BYTES_MAX || bytes < CRC_BYTES) {
        throw new IndexError(`${this.name}: invalid block of streams, ${bytes} bytes at ${start}`);
      }
      const block = await this.#read(open, start, bytes);
      return this.#named(() => decode(block), `the block of streams at byte ${start}: `);
    });
    return rows as readonly Row[];
  }

  #read(within: FileRange, start: number, sizeBytes: number): Maybe<Buffer> {
    if (start < 0) throw new IndexError(`${this.name}: too short for an index`);
    const bytes = Buffer.allocUnsafeSlow(sizeBytes);
    return sizeBytes === 0 ? bytes : this.#readInto(bytes, within, start);
  }

  #readInto(bytes: Buffer, within: FileRange, start: number): Maybe<Buffer> {
    const reading = this.#tables.reads.read(this.#file, bytes, within.start + start);
    return whenKnown(reading, (readBytes) => {
      if (readBytes === bytes.length) return bytes;
      throw new IndexError(`${this.name}: the file ends too early`);
    });
  }

  #damaged(what: string, start: number): IndexError {
    const where = `${what} at byte ${start} of the index`;
    return new IndexError(`${this.name}: ${where} does not match its CRC-32`);
  }

  /** Names the file in an error that `decode` throws. */
  #named<Decoded>(decode: () => Decoded, where: string): Decoded {
    try {
      return decode();
    } catch (cause) {
      if (!(cause instanceof IndexError)) throw cause;
      throw new IndexError(`${this.name}: ${where}${cause.message}`, { cause });
    }
  }
}
