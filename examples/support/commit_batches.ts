/**
 * Cuts commits into batches that a later run makes again, byte for byte, so that the service knows
 * them by their ids and answers `duplicate`.
 *
 * No rule that looks at the repository alone can do that: new commits may land anywhere in git's
 * order, and the last, partial batch would grow. So the log itself is the memory. A batch id is
 * `<tip>/<position>`: the commit that was the newest when an import began, and how many commits of
 * that import stand before the batch. An import covers what its tip reaches and no earlier tip
 * does, a set that never changes again. A later run reads the tips from the log, repeats their
 * imports in the same order, and only then starts one of its own for what is new.
 */
import type { Commit } from "./git_commits.ts";
import { COMMIT_SOURCE, COMMIT_STREAM, type CommitEvent, toCommitEvent } from "./commit_event.ts";

/** Batches end at these bounds. Part of what a batch id stands for: never change them. */
export const BATCH_COMMITS = 500;
export const BATCH_BYTES_SOFT_MAX = 4 * 1024 * 1024;

export interface CommitBatch {
  batchId: string;
  events: CommitEvent[];
}

/** Cuts the commits of the import of one tip into batches. */
export async function* commitBatches(
  tip: string,
  commits: AsyncIterable<Commit>,
): AsyncGenerator<CommitBatch> {
  let position = 0;
  let events: CommitEvent[] = [];
  let bytes = 0;
  for await (const commit of commits) {
    const event = toCommitEvent(commit);
    events.push(event);
    bytes += JSON.stringify(event).length;
    if (events.length < BATCH_COMMITS && bytes < BATCH_BYTES_SOFT_MAX) continue;
    yield { batchId: `${tip}/${position}`, events };
    position += events.length;
    events = [];
    bytes = 0;
  }
  if (events.length > 0) yield { batchId: `${tip}/${position}`, events };
}

/** The tip in a batch id; null for an id that is none of ours. */
export function tipOf(batchId: string): string | null {
  return /^([0-9a-f]{40}|[0-9a-f]{64})\/[0-9]+$/.exec(batchId)?.[1] ?? null;
}

/**
 * The request body of a batch.
 * @param frontier Id of the stream's last event, null for none. Should another import have written
 *   since, the service refuses the batch instead of mixing the two.
 */
export function encodeBatch(
  batch: CommitBatch,
  frontier: string | null,
): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify({
    batch_id: batch.batchId,
    source: COMMIT_SOURCE,
    events: batch.events,
    stream_precondition: { stream: COMMIT_STREAM, expected_frontier: frontier },
  }));
}
