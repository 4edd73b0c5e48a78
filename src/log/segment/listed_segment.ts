/** A segment of the log, open or not: what the manifest says of it, and how to read it. */
import type { ListCache } from "./list_cache.ts";
import type { SegmentEntry } from "./manifest.ts";
import type { ListBlocks, ListName } from "./segment_list.ts";
import type { SegmentPool } from "./segment_pool.ts";
import type { Segment } from "./segment_reader.ts";
import type { EventFilter } from "../line/stored_line.ts";

/** What readers need of a segment. */
export type ReadableSegment = Pick<
  ListedSegment,
  "path" | "lastEventId" | "isRuledOut" | "use" | "list"
>;

export class ListedSegment {
  readonly path: string;
  readonly lastEventId: string;
  readonly #entry: SegmentEntry;
  readonly #pool: SegmentPool;
  readonly #lists: ListCache;
  /** Sizes of its lists, once they are known. */
  readonly #blocks = new Map<ListName, number>();

  constructor(entry: SegmentEntry, pool: SegmentPool, lists: ListCache) {
    this.path = entry.path;
    this.lastEventId = entry.last_event_id;
    this.#entry = entry;
    this.#pool = pool;
    this.#lists = lists;
  }

  /** Whether no event here passes a filter, as far as memory tells. */
  isRuledOut({ stream, recordKey }: EventFilter): boolean {
    return this.#pool.lacks(this.#entry, "record_key", recordKey) ||
      this.#pool.lacks(this.#entry, "stream", stream);
  }

  /**
   * Runs `read` over the segment, which stays open so long.
   * @throws {CorruptLogError} the file is missing, is no segment, or not the one of the manifest.
   */
  use<Result>(read: (segment: Segment) => Result | Promise<Result>): Promise<Result> {
    return this.#pool.use(this.#entry, read);
  }

  /** A list of its footer. */
  list(name: ListName): ListBlocks {
    const read = <Result>(readList: (list: ListBlocks) => Promise<Result>) =>
      this.use((segment) => readList(segment.list(name)));
    return {
      count: async () => this.#blocks.get(name) ?? await this.#countBlocks(name),
      firstKey: async (number) => {
        const key = `${name} ${number} first ${this.lastEventId}`;
        const [first] = await this.#lists.get(
          key,
          async () => [await read((list) => list.firstKey(number))] as const,
        );
        return first;
      },
      block: (number) =>
        this.#lists.get(
          `${name} ${number} ${this.lastEventId}`,
          () => read((list) => list.block(number)),
        ),
    };
  }

  async #countBlocks(name: ListName): Promise<number> {
    const blocks = await this.use((segment) => segment.list(name).count());
    this.#blocks.set(name, blocks);
    return blocks;
  }
}
