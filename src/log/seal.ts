/**
 * Seals rotated tails: writes their events into segments, checks what was written, and only then
 * puts it into the manifest. Cut off anywhere, the pending file is still what counts, or the
 * manifest is.
 */
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import { batchPieces } from "./batch_pieces.ts";
import type { CommitFile } from "./commit_file.ts";
import { PENDING_FOLDER, SEGMENT_TEMPORARY_FILE, segmentPath, SEGMENTS_FOLDER } from "./layout.ts";
import { type Manifest, type SegmentEntry, writeManifest } from "./manifest.ts";
import { readBack } from "./segment_read_back.ts";
import { type BatchPiece, type SegmentBounds, writeSegment } from "./segment_writer.ts";
import type { Storage } from "./storage.ts";

export interface SealSettings {
  bounds?: SegmentBounds;
  /** Told of events that are on their way into a segment, how many more they are. */
  onEvents?: (events: number) => void;
}

export interface SealOptions extends SealSettings {
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
}

/**
 * Seals one pending file, which goes on where the manifest ends, and removes it. It stays open.
 * @returns the manifest with the new segments at its end.
 */
export async function sealPending(
  pending: CommitFile,
  manifest: Manifest,
  options: SealOptions,
): Promise<Manifest> {
  const { storage, onEvents } = options;
  const allPieces = batchPieces(pending.file, pending.endBytes, pending.path);
  const pieces = onEvents === undefined ? allPieces : counted(allPieces, onEvents);
  const segments = [...manifest.segments];
  for (;;) {
    const previousHead = segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
    const entry = await writeNext(pieces, previousHead, options);
    if (entry === null) break;
    segments.push(entry);
  }
  const sealed = { ...manifest, segments };
  await writeManifest(storage, sealed);
  await storage.remove(pending.path);
  await storage.syncFolder(PENDING_FOLDER);
  return sealed;
}

/** Tells of each batch as its first piece comes. */
async function* counted(
  pieces: AsyncIterable<BatchPiece>,
  onEvents: (events: number) => void,
): AsyncGenerator<BatchPiece, void> {
  let entry: BatchPiece["entry"] | null = null;
  for await (const piece of pieces) {
    if (piece.entry !== entry) {
      entry = piece.entry;
      onEvents(entry.events);
    }
    yield piece;
  }
}

/** Writes the next segment; its name is durable when this returns. Null: no events are left. */
async function writeNext(
  pieces: AsyncIterator<BatchPiece>,
  previousHead: string,
  { storage, clockMs, bounds }: SealOptions,
): Promise<SegmentEntry | null> {
  const written = await writeSegment(storage, SEGMENT_TEMPORARY_FILE, pieces, {
    previousHead,
    ...(bounds === undefined ? {} : { bounds }),
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
