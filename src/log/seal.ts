/**
 * Seals rotated tails: writes their events into segments, checks what was written, and only then
 * puts it into the manifest, segment by segment. Cut off anywhere, what the manifest does not list
 * yet is still read from the pending file.
 */
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import type { CommitFile } from "./commit_file.ts";
import { readCommits, type WholeCommit } from "./commit_reader.ts";
import { PENDING_FOLDER, SEGMENT_TEMPORARY_FILE, segmentPath, SEGMENTS_FOLDER } from "./layout.ts";
import { type Manifest, type SegmentEntry, writeManifest } from "./manifest.ts";
import { readBack } from "./segment_read_back.ts";
import { type SegmentBounds, writeSegment } from "./segment_writer.ts";
import type { Storage } from "./storage.ts";

export interface SealSettings {
  bounds?: SegmentBounds;
  /** Told of events that are on their way into a segment, how many more they are. */
  onEvents?: (events: number) => void;
  /** Asked after each commit: whether to end the segment there, and the sealing with it. */
  isStopped?: () => boolean;
}

export interface SealOptions extends SealSettings {
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
}

/**
 * Seals what of a pending file the manifest does not cover yet, and removes the file when nothing
 * is left. It stays open.
 * @returns the manifest with one more segment at its end, once that is durable; for each segment.
 */
export async function* sealPending(
  pending: CommitFile,
  manifest: Manifest,
  options: SealOptions,
): AsyncGenerator<Manifest, void> {
  const { file, path, startBytes, endBytes } = pending;
  const { storage, onEvents, isStopped } = options;
  const allCommits = readCommits(file, startBytes, endBytes, path);
  const commits = onEvents === undefined ? allCommits : counted(allCommits, onEvents);
  let sealed = manifest;
  for (;;) {
    const previousHead = sealed.segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
    const entry = await writeNext(commits, previousHead, options);
    if (entry === null) break;
    sealed = { ...sealed, segments: [...sealed.segments, entry] };
    await writeManifest(storage, sealed);
    yield sealed;
    if (isStopped?.() && entry.last_event_id !== pending.lastEventId) return;
  }
  await storage.remove(path);
  await storage.syncFolder(PENDING_FOLDER);
}

/** Tells of each commit as it comes. */
async function* counted(
  commits: AsyncIterable<WholeCommit>,
  onEvents: (events: number) => void,
): AsyncGenerator<WholeCommit, void> {
  for await (const next of commits) {
    onEvents(next.commit.batches.reduce((sum, { events }) => sum + events, 0));
    yield next;
  }
}

/** Writes the next segment; its name is durable when this returns. Null: no events are left. */
async function writeNext(
  commits: AsyncIterator<WholeCommit>,
  previousHead: string,
  { storage, clockMs, bounds, isStopped }: SealOptions,
): Promise<SegmentEntry | null> {
  const written = await writeSegment(storage, SEGMENT_TEMPORARY_FILE, commits, {
    previousHead,
    ...(bounds === undefined ? {} : { bounds }),
    ...(isStopped === undefined ? {} : { endsEarly: isStopped }),
  });
  if (written === null) return null;
  // Before anything relies on it.
  await readBack(storage, SEGMENT_TEMPORARY_FILE, written);
  const path = segmentPath(written.facts);
  const entry = { ...written.facts, path, sealed_at: formatTimestamp(clockMs()) };
  await storage.rename(SEGMENT_TEMPORARY_FILE, path);
  await storage.syncFolder(SEGMENTS_FOLDER);
  return entry;
}
