/** One coherent view of the log: what was durable at a moment, whatever is appended later. */
import type { RecentCommits } from "./recent_commits.ts";
import type { SparseIndex } from "./sparse_index.ts";
import type { StorageFile } from "./storage.ts";

/** A tail or pending file up to the end of the snapshot; it holds at least one event. */
export interface FileSnapshot {
  path: string;
  file: StorageFile;
  index: SparseIndex;
  /** What of the file is in memory too; null for a file that is not written any more. */
  recent: RecentCommits | null;
  endBytes: number;
  lastEventId: string;
}

export interface LogSnapshot {
  /** Last durable event; null for an empty log. */
  frontier: string | null;
  /** From oldest to newest. */
  files: readonly FileSnapshot[];
}
