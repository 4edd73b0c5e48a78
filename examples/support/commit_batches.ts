/**
 * Groups commits into batches that a later run can rebuild byte for byte, so that the service
 * returns `duplicate`.
 *
 * The repository alone is not enough. New commits may appear anywhere in git's order, and the last,
 * partial batch would grow. Therefore the log stores the import state. A batch id is
 * `<tip>/<position>`: the newest commit when an import began, and the number of that import's
 * commits that precede the batch. An import covers the commits reachable from its tip but not from
 * any earlier tip, and this set never changes. A later run reads the tips from the log, repeats
 * their imports in the same order, and only then starts a new one.
 */
import type { Batch } from "../../mod.ts";
import { COMMIT_SOURCE, type CommitEvent, toCommitEvent } from "./commit_event.ts";
import type { Commit } from "./git_commits.ts";

/** Batch limits. Never change them, because batch ids depend on them. */
export const BATCH_COMMITS = 500;
export const BATCH_BYTES_SOFT_MAX = 4 * 1024 * 1024;

/** Groups the commits in one tip's import into batches. */
export async function* commitBatches(
  tip: string,
  commits: AsyncIterable<Commit>,
): AsyncGenerator<Batch> {
  let position = 0;
  let events: CommitEvent[] = [];
  let bytes = 0;
  const source = COMMIT_SOURCE;
  for await (const commit of commits) {
    const event = toCommitEvent(commit);
    events.push(event);
    bytes += JSON.stringify(event).length;
    if (events.length < BATCH_COMMITS && bytes < BATCH_BYTES_SOFT_MAX) continue;
    yield { source, batchId: `${tip}/${position}`, events };
    position += events.length;
    events = [];
    bytes = 0;
  }
  if (events.length > 0) yield { source, batchId: `${tip}/${position}`, events };
}

/** Returns the tip in a batch id; null if the id is malformed. */
export function tipOf(batchId: string): string | null {
  return /^([0-9a-f]{40}|[0-9a-f]{64})\/[0-9]+$/.exec(batchId)?.[1] ?? null;
}
