/**
 * Seals a pending file: writes all its events to segments, verifies them, then adds them to the
 * manifest atomically. A crash before then leaves orphan segments, and the pending file remains.
 */
import { GENESIS_HEAD_HEX } from "../../event/chain.ts";
import { formatTimestamp } from "../../event/timestamp.ts";
import {
  type Manifest,
  type SegmentEntry,
  withSegments,
  writeManifest,
} from "../segment/manifest.ts";
import {
  MANIFEST_TEMPORARY_FILE,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILE,
  segmentPath,
  SEGMENTS_FOLDER,
} from "../storage/file_names.ts";
import { removeIfThere, type Storage } from "../storage/storage.ts";
import type { CommitFile } from "../wal/commit_file.ts";
import type { MakeSegment } from "./segment_maker.ts";

export interface SealOptions {
  storage: Storage;
  /** Returns Unix milliseconds. */
  clockMs: () => number;
  make: MakeSegment;
  /** See `SegmentTask`. */
  backlogBytes: () => number;
}

/**
 * Seals a pending file without removing it. A failure may leave segments that are not in the
 * manifest; the next attempt replaces them.
 * @returns the durable manifest, with the new segments appended.
 */
export async function sealPending(
  pending: CommitFile,
  manifest: Manifest,
  { storage, clockMs, make, backlogBytes }: SealOptions,
): Promise<Manifest> {
  const segments: SegmentEntry[] = [];
  const last = () => segments.at(-1) ?? manifest.segments.at(-1);
  let startBytes = 0;
  while (last()?.last_event_id !== pending.lastEventId) {
    const { facts, endBytes } = await make({
      path: pending.path,
      startBytes,
      endBytes: pending.endBytes,
      previousHead: last()?.head ?? GENESIS_HEAD_HEX,
      backlogBytes: backlogBytes(),
    });
    const path = segmentPath(facts);
    await storage.rename(SEGMENT_TEMPORARY_FILE, path);
    segments.push({ ...facts, path, sealed_at: formatTimestamp(clockMs()) });
    startBytes = endBytes;
  }
  await storage.syncFolder(SEGMENTS_FOLDER);
  const sealed = withSegments(manifest, segments);
  await writeManifest(storage, sealed);
  return sealed;
}

/** Removes the temporary files from a failed seal, since the next seal needs their names. */
export async function removeUnfinished(storage: Storage): Promise<void> {
  await removeIfThere(storage, SEGMENT_TEMPORARY_FILE);
  await removeIfThere(storage, MANIFEST_TEMPORARY_FILE);
}

/** Removes a pending file whose events are all in segments listed in the manifest. */
export async function removePending(storage: Storage, path: string): Promise<void> {
  await storage.remove(path);
  await storage.syncFolder(PENDING_FOLDER);
}
