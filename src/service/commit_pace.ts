/**
 * Decides which commits block the thread. Without the hops to the thread pool a lone writer's
 * commit takes a third less time, but every other client waits for the disk. So a commit blocks
 * only if it is small, nobody waits for the next one, and the last ones were quick and lone too:
 * readers wait for one unexpectedly slow sync at most.
 */
import type { CallMode } from "../log/storage/storage.ts";

/** Longest time of a quick commit. */
const QUICK_COMMIT_MS = 1;
/** Largest commit that blocks: the times of small commits predict nothing about larger ones. */
const BLOCKING_COMMIT_BYTES_MAX = 64 * 1024;
/** Quick commits in a row before one blocks. */
const QUICK_RUN_MIN = 4;
/** One in this many quick commits is pooled: only then do batches of other clients show up. */
const COMMITS_PER_PROBE = 16;

export class CommitPace {
  /** Quick commits in a row that nobody waited for. */
  #quickRun = 0;

  /** The mode of a commit of `sizeBytes` that nobody waits for. */
  mode(sizeBytes: number): CallMode {
    const isProbe = this.#quickRun % COMMITS_PER_PROBE === 0;
    return this.#quickRun >= QUICK_RUN_MIN && !isProbe && sizeBytes <= BLOCKING_COMMIT_BYTES_MAX
      ? "blocking"
      : "pooled";
  }

  /** Takes note of a commit; `isLone` if it was one batch, and no other waits now. */
  note({ tookMs, isLone }: { tookMs: number; isLone: boolean }): void {
    this.#quickRun = isLone && tookMs <= QUICK_COMMIT_MS ? this.#quickRun + 1 : 0;
  }
}
