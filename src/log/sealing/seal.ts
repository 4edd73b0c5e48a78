/**
 * Seals rotated tails: has their events written into segments and checked, and only then puts those
 * into the manifest, one by one. Cut off anywhere, what the manifest does not list yet is still
 * read from the pending file.
 */
import { GENESIS_HEAD_HEX } from "../../event/chain.ts";
import { formatTimestamp } from "../../event/timestamp.ts";
import type { CommitFile } from "../wal/commit_file.ts";
import {
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILE,
  segmentPath,
  SEGMENTS_FOLDER,
} from "../storage/file_names.ts";
import { type Manifest, type SegmentEntry, writeManifest } from "../segment/manifest.ts";
import type { SegmentMaker } from "./segment_maker.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import type { Storage } from "../storage/storage.ts";

export interface SealOptions {
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
  maker: SegmentMaker;
}

/**
 * Seals what of a pending file no segment covers yet. The file stays.
 * @returns the manifest with one more segment at its end, once that is durable; for each segment.
 */
export async function* sealPending(
  pending: CommitFile,
  manifest: Manifest,
  { storage, clockMs, maker }: SealOptions,
): AsyncGenerator<Manifest, void> {
  let sealed = manifest;
  while (sealed.segments.at(-1)?.last_event_id !== pending.lastEventId) {
    const { facts, endBytes } = await maker.make({
      path: pending.path,
      startBytes: pending.sealedBytes,
      endBytes: pending.endBytes,
      previousHead: sealed.segments.at(-1)?.head ?? GENESIS_HEAD_HEX,
    });
    const entry = { ...await nameSegment(storage, facts), sealed_at: formatTimestamp(clockMs()) };
    const next = { ...sealed, segments: [...sealed.segments, entry] };
    await writeManifest(storage, next);
    sealed = next;
    pending.sealedBytes = endBytes;
    yield sealed;
  }
}

/** Removes a pending file whose events are all in the manifest's segments. */
export async function removePending(storage: Storage, path: string): Promise<void> {
  await storage.remove(path);
  await storage.syncFolder(PENDING_FOLDER);
}

/** Gives a segment that has been made its name, durably. */
async function nameSegment(
  storage: Storage,
  facts: SegmentFacts,
): Promise<Omit<SegmentEntry, "sealed_at">> {
  const path = segmentPath(facts);
  await storage.rename(SEGMENT_TEMPORARY_FILE, path);
  await storage.syncFolder(SEGMENTS_FOLDER);
  return { ...facts, path };
}
