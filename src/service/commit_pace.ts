/**
 * Chooses which commits block the main thread. Bypassing the thread pool makes a lone writer's
 * commit a third faster, but every other client waits for the disk. Therefore a commit blocks only
 * if it is small, no other batch is waiting, and the preceding commits were quick and lone as well.
 * Readers wait for at most one unexpectedly slow sync.
 */
import type { CallMode } from "../log/storage/storage.ts";

/** Maximum duration of a quick commit. */
const QUICK_COMMIT_MS = 1;
/** Largest commit that blocks. Small commits don't predict how long a larger one takes. */
const BLOCKING_COMMIT_BYTES_MAX = 64 * 1024;
/** Number of consecutive quick commits before one blocks. */
const QUICK_RUN_MIN = 4;
/** Every nth quick commit does not block, since other clients' batches can arrive only then. */
const COMMITS_PER_PROBE = 16;

export class CommitPace {
  /** Number of consecutive quick and lone commits. */
  #quickRun = 0;

  /** Returns the mode for a commit of `sizeBytes` when no other batch is waiting. */
  mode(sizeBytes: number): CallMode {
    const isProbe = this.#quickRun % COMMITS_PER_PROBE === 0;
    return this.#quickRun >= QUICK_RUN_MIN && !isProbe && sizeBytes <= BLOCKING_COMMIT_BYTES_MAX
      ? "blocking"
      : "pooled";
  }

  /** Records a commit. `isLone`: it had a single batch, and no other batch is waiting now. */
  note({ tookMs, isLone }: { tookMs: number; isLone: boolean }): void {
    this.#quickRun = isLone && tookMs <= QUICK_COMMIT_MS ? this.#quickRun + 1 : 0;
  }
}
