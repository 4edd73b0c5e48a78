/** A segment of the log, open or not: what the manifest says of it, and how to read it. */
import type { LruCache } from "../../lru_cache.ts";
import type { SegmentEntry } from "./manifest.ts";
import type { TableCache } from "./table_cache.ts";
import type { Segment } from "./segment_reader.ts";
import type { StreamBlock, StreamIndexBlock } from "./stream_index.ts";
import type { StreamIndex } from "./stream_index_reader.ts";
import type { EventFilter } from "../line/stored_line.ts";

/** What readers need of a segment. */
export type ReadableSegment = Pick<
  ListedSegment,
  "path" | "lastEventId" | "isPruned" | "use" | "streams"
>;

/** Blocks of stream indexes in memory, those of all segments of a log. */
export type StreamBlockCache = LruCache<StreamBlock | StreamIndexBlock>;

export class ListedSegment {
  readonly path: string;
  readonly lastEventId: string;
  /** Its stream index, read by blocks. */
  readonly streams: StreamIndex;
  readonly #entry: SegmentEntry;
  readonly #tables: TableCache;

  constructor(entry: SegmentEntry, tables: TableCache, blocks: StreamBlockCache) {
    this.path = entry.path;
    this.lastEventId = entry.last_event_id;
    this.#entry = entry;
    this.#tables = tables;
    this.streams = {
      index: async () => {
        const load = () => this.use((segment) => segment.readStreamIndex());
        return await blocks.load(this.lastEventId, load) as StreamIndexBlock;
      },
      block: async (place) => {
        const load = () => this.use((segment) => segment.readStreamBlock(place));
        return await blocks.load(`${this.lastEventId} ${place.offset}`, load) as StreamBlock;
      },
    };
  }

  /** Whether no event here passes a filter, as far as memory tells. */
  isPruned({ stream, recordKey }: EventFilter): boolean {
    return this.#tables.lacks(this.#entry, "record_key", recordKey) ||
      this.#tables.lacks(this.#entry, "stream", stream);
  }

  /**
   * Runs `read` over the segment, which stays open so long.
   * @throws {CorruptLogError} the file is missing, is no segment, or not the one of the manifest.
   */
  use<Result>(read: (segment: Segment) => Result | Promise<Result>): Promise<Result> {
    return this.#tables.use(this.#entry, read);
  }
}
