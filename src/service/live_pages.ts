/**
 * The live pages that followers share: those at the same place of the log with the same filter read
 * it once, so that a commit costs one read however many follow. Only pages up to the newest
 * frontier are asked for; older ones make room for them.
 */
import { LIVE_PAGES_BYTES_MAX } from "../limits.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import { LruCache } from "../lru_cache.ts";
import { type FollowPage, type FollowPosition, readFollowPage } from "./follow_page.ts";

type LiveQuery = Pick<FollowPosition, "limitEvents" | "filter">;

/** What a page takes besides its record, about. */
const PAGE_OVERHEAD_BYTES = 512;

export class LivePages {
  readonly #pages = new LruCache<FollowPage>(LIVE_PAGES_BYTES_MAX, pageBytes);

  /**
   * The next page of the newest snapshot; at once where another has read it before.
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
    const key = `${snapshot.frontier} ${position.after} ${queryKey}`;
    return this.#pages.get(key) ??
      this.#load(key, () => readFollowPage(snapshot, position, isWanted));
  }

  async #load(key: string, read: () => Promise<FollowPage>): Promise<FollowPage> {
    const page = await this.#pages.load(key, read);
    // A larger one is shared only while it is read.
    if (pageBytes(page) > LIVE_PAGES_BYTES_MAX) this.#pages.delete(key);
    return page;
  }
}

function pageBytes({ record }: FollowPage): number {
  return PAGE_OVERHEAD_BYTES + (record?.length ?? 0);
}

/** Equal for those whose pages at the same position are. */
export function liveQueryKey({ limitEvents, filter }: LiveQuery): string {
  const { source, stream, recordKey, kind } = filter;
  return JSON.stringify([limitEvents, source, stream, recordKey, kind]);
}
