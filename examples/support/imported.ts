/** Reads which commits the log already contains; see commit_batches.ts. */
import { COMMIT_SOURCE, COMMIT_STREAM } from "./commit_event.ts";
import { tipOf } from "./commit_batches.ts";
import type { EventLogClient } from "../../mod.ts";

const OF_COMMITS = { source: COMMIT_SOURCE, stream: COMMIT_STREAM };

export interface Imported {
  /** Tips of the imports so far, oldest first. */
  tips: string[];
  /** Id of the stream's last event; null if there is none. */
  frontier: string | null;
}

/** Reads the earlier imports. Memory use grows with the number of imports, not of commits. */
export async function readImported(client: EventLogClient): Promise<Imported> {
  const tips = new Set<string>();
  let frontier: string | null = null;
  for await (const event of client.replay(OF_COMMITS)) {
    const tip = tipOf(event.batch_id);
    if (tip !== null) tips.add(tip);
    frontier = event.event_id;
  }
  return { tips: [...tips], frontier };
}

/**
 * Returns the hashes of the commits imported for each tip. This is needed only for tips that are no
 * longer in the repository, for example after a rebase, because git cannot list their commits.
 */
export async function readCommitsOfTips(
  client: EventLogClient,
  tips: ReadonlySet<string>,
): Promise<Map<string, string[]>> {
  const commits = new Map<string, string[]>([...tips].map((tip) => [tip, []]));
  if (tips.size === 0) return commits;
  for await (const event of client.replay(OF_COMMITS)) {
    commits.get(tipOf(event.batch_id) ?? "")?.push(event.record_key);
  }
  return commits;
}
