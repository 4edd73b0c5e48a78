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

interface KeptPage {
  page: Promise<FollowPage>;
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

  /** The next page of the newest snapshot. @throws what reading the log throws. */
  read(snapshot: LogSnapshot, position: FollowPosition): Promise<FollowPage> {
    if (snapshot.frontier !== this.#frontier) {
      this.#frontier = snapshot.frontier;
      this.#kept = new Map();
      this.#keptBytes = 0;
    }
    const key = positionKey(position);
    return (this.#kept.get(key) ?? this.#readPage(key, snapshot, position)).page;
  }

  #readPage(key: string, snapshot: LogSnapshot, position: FollowPosition): KeptPage {
    const kept = { page: readFollowPage(snapshot, position), bytes: 0 };
    this.#kept.set(key, kept);
    kept.page.then(
      ({ record }) => this.#keep(key, kept, PAGE_OVERHEAD_BYTES + (record?.length ?? 0)),
      // Whoever asked for it is told; the next one tries again.
      () => this.#keep(key, kept, Infinity),
    );
    return kept;
  }

  /** Decides on a page that has been read. */
  #keep(key: string, kept: KeptPage, bytes: number): void {
    if (this.#kept.get(key) !== kept) return;
    if (bytes > LIVE_PAGES_BYTES_MAX) {
      this.#kept.delete(key);
      return;
    }
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
}

/** Equal for those whose pages are. */
function positionKey({ after, limitEvents, filter }: FollowPosition): string {
  const { source, stream, recordKey, kind } = filter;
  return JSON.stringify([after, limitEvents, source, stream, recordKey, kind]);
}
