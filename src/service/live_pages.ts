/**
 * The live pages that followers share. Those at the same place of the log with the same filter read
 * it once, so that a commit costs one read however many follow.
 *
 * Only pages up to the newest frontier are shared, and of those that have been read only so many
 * bytes are kept: followers that catch up page by page leave nothing behind.
 */
import { LIVE_PAGES_BYTES_MAX } from "../limits.ts";
import { chunkMemory } from "../log/read/chunk_memory.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import { type FollowPage, type FollowPosition, readFollowPage } from "./follow_page.ts";

type LiveQuery = Pick<FollowPosition, "limitEvents" | "filter">;

interface KeptPage {
  after: string | null;
  queryKey: string;
  page: FollowPage | Promise<FollowPage>;
  /** Followers that wait for it to be read. */
  waiting: number;
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
  /** The one that was asked for last: most ask for the same, and this spares them the key. */
  #latest: KeptPage | null = null;

  /**
   * The next page of the newest snapshot; at once where another has read it before. Whoever has it
   * may give its record back to `chunkMemory`.
   * @param queryKey that of the position's filter and limit.
   * @param isWanted see `readFollowPage()`; to be the same for all who share pages.
   * @throws what reading the log throws.
   */
  read(
    snapshot: LogSnapshot,
    position: FollowPosition,
    queryKey: string,
    isWanted: () => boolean,
  ): FollowPage | Promise<FollowPage> {
    if (snapshot.frontier !== this.#frontier) {
      this.#frontier = snapshot.frontier;
      for (const kept of this.#kept.values()) this.#drop(kept);
    }
    const { after } = position;
    const latest = this.#latest;
    if (latest !== null && latest.after === after && latest.queryKey === queryKey) {
      return handOut(latest);
    }
    this.#latest = this.#kept.get(keyOf({ after, queryKey })) ??
      this.#readPage(readFollowPage(snapshot, position, isWanted), position, queryKey);
    return handOut(this.#latest);
  }

  #readPage(
    reading: Promise<FollowPage>,
    { after }: FollowPosition,
    queryKey: string,
  ): KeptPage {
    const kept: KeptPage = { after, queryKey, page: reading, waiting: 0, bytes: 0 };
    this.#kept.set(keyOf(kept), kept);
    reading.then(
      (page) => this.#keep(kept, page),
      // Whoever asked for it is told; the next one tries again.
      () => this.#drop(kept),
    );
    return kept;
  }

  /** Decides on a page that has been read. */
  #keep(kept: KeptPage, page: FollowPage): void {
    // Before it may be given back here.
    share(page, kept.waiting);
    kept.page = page;
    if (this.#kept.get(keyOf(kept)) !== kept) return giveBack(page);
    kept.bytes = PAGE_OVERHEAD_BYTES + (page.record?.buffer.byteLength ?? 0);
    this.#keptBytes += kept.bytes;
    if (kept.bytes > LIVE_PAGES_BYTES_MAX) return this.#drop(kept);
    for (const old of this.#kept.values()) {
      if (this.#keptBytes <= LIVE_PAGES_BYTES_MAX) return;
      if (old.bytes > 0) this.#drop(old);
    }
  }

  #drop(kept: KeptPage): void {
    if (this.#latest === kept) this.#latest = null;
    if (this.#kept.get(keyOf(kept)) !== kept) return;
    this.#kept.delete(keyOf(kept));
    this.#keptBytes -= kept.bytes;
    if (!(kept.page instanceof Promise)) giveBack(kept.page);
  }
}

/** The page for one more follower. */
function handOut(kept: KeptPage): FollowPage | Promise<FollowPage> {
  if (kept.page instanceof Promise) kept.waiting += 1;
  else share(kept.page, 1);
  return kept.page;
}

function share({ record }: FollowPage, followers: number): void {
  if (record !== null) chunkMemory.share(record, followers);
}

function giveBack({ record }: FollowPage): void {
  if (record !== null) chunkMemory.give(record);
}

function keyOf({ after, queryKey }: Pick<KeptPage, "after" | "queryKey">): string {
  return after + queryKey;
}

/** Equal for those whose pages at the same position are. */
export function liveQueryKey({ limitEvents, filter }: LiveQuery): string {
  const { source, stream, recordKey, kind } = filter;
  return JSON.stringify([limitEvents, source, stream, recordKey, kind]);
}
