/**
 * The files of an open log: segments, rotated tails that are not yet sealed, and the tail. Each
 * change takes place in one turn of the event loop, so no reader misses an event or sees it twice.
 */
import { assert } from "../../assert.ts";
import type { LogFile, LogSnapshot, SealedFile } from "../read/snapshot.ts";
import type { SegmentEntry } from "../segment/manifest.ts";
import type { SealedHistory } from "../segment/sealed_history.ts";
import { BatchIndex } from "../wal/batch_index.ts";
import type { CommitFile } from "../wal/commit_file.ts";
import { fileView } from "../wal/commit_file_view.ts";

export class LogFiles {
  readonly sealed: SealedHistory;
  /**
   * The files that are not yet sealed, oldest first: rotated tails, then the tail. A file leaves
   * this list in the same turn of the event loop in which its segments are added to `sealed`.
   */
  unsealed: readonly CommitFile[];
  /** What readers see. */
  snapshot: LogSnapshot;

  constructor(sealed: SealedHistory, unsealed: readonly CommitFile[]) {
    this.sealed = sealed;
    this.unsealed = unsealed;
    this.snapshot = takeSnapshot(sealed.files, unsealed);
  }

  get tail(): CommitFile {
    return this.unsealed.at(-1)!;
  }

  /** Rotated tails that are not yet sealed, oldest first. */
  get pending(): readonly CommitFile[] {
    return this.unsealed.slice(0, -1);
  }

  /** Shows readers the commits in the tail. */
  publish(): void {
    this.snapshot = takeSnapshot(this.sealed.files, this.unsealed);
  }

  /** Appends a new tail. The one before is now a pending file. */
  addTail(tail: CommitFile): void {
    this.unsealed = [...this.unsealed, tail];
    this.publish();
  }

  /** Switches readers from the oldest pending file to its segments. */
  replaceOldest(segments: readonly SegmentEntry[]): void {
    const [file, ...rest] = this.unsealed;
    assert(rest.length > 0, "a pending file must exist");
    const known = this.sealed.files.length;
    this.sealed.add(segments);
    this.unsealed = rest;
    file!.sealedIn = this.sealed.files.slice(known);
    // Snapshots may retain the file.
    file!.batches = new BatchIndex();
    this.publish();
  }

  async close(): Promise<void> {
    for (const { file } of this.unsealed) await file.close();
    await this.sealed.close();
  }
}

function takeSnapshot(
  sealed: readonly SealedFile[],
  unsealed: readonly CommitFile[],
): LogSnapshot {
  const views = unsealed.filter(({ lastEventId }) => lastEventId !== null).map(fileView);
  let files: readonly LogFile[] | null = null;
  return {
    frontier: (views.at(-1) ?? sealed.at(-1))?.lastEventId ?? null,
    /** Built on first use, since copying ten thousand segments on every commit is too slow. */
    get files() {
      return files ??= [...sealed, ...views];
    },
  };
}
