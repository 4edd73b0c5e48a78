/**
 * Seals rotated tails: writes their events into segments, checks what was written, and only then
 * puts it into the manifest. Cut off anywhere, the pending file is still what counts, or the
 * manifest is.
 */
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import { batchPieces } from "./batch_pieces.ts";
import type { CommitFile } from "./commit_file.ts";
import { HistoryCheck } from "./history_check.ts";
import { PENDING_FOLDER, SEGMENT_TEMPORARY_FILE, segmentPath, SEGMENTS_FOLDER } from "./layout.ts";
import { type Manifest, type SegmentEntry, writeManifest } from "./manifest.ts";
import { verifySegment } from "./segment_verify.ts";
import { type SegmentBounds, writeSegment } from "./segment_writer.ts";
import type { Storage } from "./storage.ts";

export interface SealOptions {
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
  bounds?: SegmentBounds;
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
  const { storage } = options;
  const pieces = batchPieces(pending.file, pending.endBytes, pending.path);
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

/** Writes the next segment; its name is durable when this returns. Null: no events are left. */
async function writeNext(
  pieces: ReturnType<typeof batchPieces>,
  previousHead: string,
  { storage, clockMs, bounds }: SealOptions,
): Promise<SegmentEntry | null> {
  const facts = await writeSegment(storage, SEGMENT_TEMPORARY_FILE, pieces, {
    previousHead,
    ...(bounds === undefined ? {} : { bounds }),
  });
  if (facts === null) return null;
  const path = segmentPath(facts);
  const entry = { ...facts, path, sealed_at: formatTimestamp(clockMs()) };
  // Read back and checked before anything relies on it.
  const written = { ...entry, path: SEGMENT_TEMPORARY_FILE };
  await verifySegment(storage, written, new HistoryCheck({ chain: false }));
  await storage.rename(SEGMENT_TEMPORARY_FILE, path);
  await storage.syncFolder(SEGMENTS_FOLDER);
  return entry;
}
