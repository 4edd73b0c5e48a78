/**
 * The live pages that followers share. Those at the same place of the log with the same filter read
 * it once, so that a commit costs one read however many follow.
 *
 * Only pages up to the newest frontier are shared, and of those that have been read only so many
 * bytes are kept: followers that catch up page by page leave nothing behind.
 */
import { LIVE_PAGES_BYTES_MAX } from "../limits.ts";
import type { LogSnapshot } from "../log/snapshot.ts";
import { type FollowPage, type FollowPosition, readFollowPage } from "./follow_page.ts";

type LiveQuery = Pick<FollowPosition, "limitEvents" | "filter">;

interface KeptPage {
  page: FollowPage | Promise<FollowPage>;
  /** What it takes of the bound; 0 while it is being read. */
  bytes: number;
}

/** What a page takes besides its record, about. */
const PAGE_OVERHEAD_BYTES = 512;

export class LivePages {
  #frontier: string | null = null;
  /** From the oldest to the newest. */
  #kept = new Map<string, KeptPage>();
  #keptBytes = 0;

  /**
   * The next page of the newest snapshot; at once where another has read it before.
   * @param queryKey that of the position's filter and limit.
   * @throws what reading the log throws.
   */
  read(
    snapshot: LogSnapshot,
    position: FollowPosition,
    queryKey: string,
  ): FollowPage | Promise<FollowPage> {
    if (snapshot.frontier !== this.#frontier) {
      this.#frontier = snapshot.frontier;
      this.#kept = new Map();
      this.#keptBytes = 0;
    }
    const key = position.after + queryKey;
    return (this.#kept.get(key) ?? this.#readPage(key, snapshot, position)).page;
  }

  #readPage(key: string, snapshot: LogSnapshot, position: FollowPosition): KeptPage {
    const reading = readFollowPage(snapshot, position);
    const kept: KeptPage = { page: reading, bytes: 0 };
    this.#kept.set(key, kept);
    reading.then(
      (page) => this.#keep(key, kept, page),
      // Whoever asked for it is told; the next one tries again.
      () => this.#drop(key, kept),
    );
    return kept;
  }

  /** Decides on a page that has been read. */
  #keep(key: string, kept: KeptPage, page: FollowPage): void {
    const bytes = PAGE_OVERHEAD_BYTES + (page.record?.length ?? 0);
    if (bytes > LIVE_PAGES_BYTES_MAX) return this.#drop(key, kept);
    if (this.#kept.get(key) !== kept) return;
    kept.page = page;
    kept.bytes = bytes;
    this.#keptBytes += bytes;
    for (const [oldKey, old] of this.#kept) {
      if (this.#keptBytes <= LIVE_PAGES_BYTES_MAX) return;
      if (old.bytes > 0) {
        this.#kept.delete(oldKey);
        this.#keptBytes -= old.bytes;
      }
    }
  }

  #drop(key: string, kept: KeptPage): void {
    if (this.#kept.get(key) === kept) this.#kept.delete(key);
  }
}

/** Equal for those whose pages at the same position are. */
export function liveQueryKey({ limitEvents, filter }: LiveQuery): string {
  const { source, stream, recordKey, kind } = filter;
  return JSON.stringify([limitEvents, source, stream, recordKey, kind]);
}
