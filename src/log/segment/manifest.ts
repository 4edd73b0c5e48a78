/**
 * The committed list of segments: canonical JSON and one LF, replaced atomically. A log directory
 * without a manifest is an empty log that no writer has opened yet.
 */
import { Buffer } from "node:buffer";
import { canonicalize } from "../../event/json/canonical_json.ts";
import { GENESIS_HEAD_HEX } from "../../event/chain.ts";
import { isSha256Hex } from "../../event/hash.ts";
import { parseJson } from "../../event/json/strict_json.ts";
import { MANIFEST_BYTES_MAX } from "../../limits.ts";
import { MANIFEST_FILE, MANIFEST_TEMPORARY_FILE, segmentPath } from "../storage/file_names.ts";
import { CorruptLogError, UnsupportedFormatError } from "../storage/errors.ts";
import { type ExpectedSegment, hasEventFacts, isCount } from "./segment_metadata.ts";
import { isNotFound, readSmallFile, replaceFile, type Storage } from "../storage/storage.ts";

const FORMAT = "service/log";
/** The storage schema that this program writes, and the newest one that it reads. */
const SCHEMA_VERSION = 1;

/** A segment as listed in the manifest. */
export interface SegmentEntry extends ExpectedSegment {
  /** When it was sealed, `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
  sealed_at: string;
}

export interface Manifest {
  format: typeof FORMAT;
  schema_version: number;
  /** Lowest storage schema that a program must support to read the log. */
  min_reader: number;
  /** Lowest storage schema that a program must support to write to the log. */
  min_writer: number;
  /** Oldest first. */
  segments: readonly SegmentEntry[];
}

export const EMPTY_MANIFEST: Manifest = {
  format: FORMAT,
  schema_version: SCHEMA_VERSION,
  min_reader: SCHEMA_VERSION,
  min_writer: SCHEMA_VERSION,
  segments: [],
};

/**
 * Reads the manifest of a log; null if it does not exist.
 * @param access how the caller will access the log.
 * @throws {CorruptLogError} if the manifest is damaged or invalid.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function readManifest(
  storage: Storage,
  access: "read" | "write" = "write",
): Promise<Manifest | null> {
  const bytes = await readSmallFile(storage, MANIFEST_FILE, MANIFEST_BYTES_MAX).catch((error) => {
    if (isNotFound(error)) return null;
    throw error;
  });
  return bytes === null ? null : decodeManifest(bytes, access);
}

/** Decodes and validates the bytes of a manifest. @throws like `readManifest()`. */
export function decodeManifest(bytes: Uint8Array, access: "read" | "write" = "write"): Manifest {
  let value: unknown;
  try {
    value = parseJson(bytes);
  } catch (error) {
    throw new CorruptLogError(`${MANIFEST_FILE}: ${(error as Error).message}`);
  }
  const { format, min_reader, min_writer, segments } = (value ?? {}) as Partial<Manifest>;
  if (format !== FORMAT || !isInteger(min_reader) || !isInteger(min_writer)) {
    throw new CorruptLogError(`${MANIFEST_FILE}: not the manifest of a log`);
  }
  const bounds = access === "read" ? { min_reader } : { min_reader, min_writer };
  for (const [bound, version] of Object.entries(bounds)) {
    if (version <= SCHEMA_VERSION) continue;
    throw new UnsupportedFormatError(
      `${MANIFEST_FILE}: ${bound} is ${version}, but this program supports only ` +
        `${SCHEMA_VERSION}; use the newer program that wrote the log`,
    );
  }
  // Schema 1 is the oldest. A newer program may have raised `min_writer`.
  if (
    min_writer >= SCHEMA_VERSION && Array.isArray(segments) &&
    segments.every(isSegmentEntry) && areConsecutive(segments)
  ) {
    const manifest = { ...EMPTY_MANIFEST, min_writer, segments };
    // There is one encoding of these values.
    if (encodeManifest(manifest).equals(bytes)) return manifest;
  }
  throw new CorruptLogError(`${MANIFEST_FILE}: not a manifest of storage schema 1`);
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** @throws {Error} if the manifest is larger than readers accept; the previous one is kept. */
export async function writeManifest(storage: Storage, manifest: Manifest): Promise<void> {
  const bytes = encodeManifest(manifest);
  if (bytes.length > MANIFEST_BYTES_MAX) {
    throw new Error(
      `${MANIFEST_FILE}: ${bytes.length} bytes for ${manifest.segments.length} segments exceed ` +
        `the limit of ${MANIFEST_BYTES_MAX}; continue in a new deployment`,
    );
  }
  await replaceFile(storage, MANIFEST_FILE, MANIFEST_TEMPORARY_FILE, bytes);
}

/** Returns a manifest with more segments. */
export function withSegments(manifest: Manifest, added: readonly SegmentEntry[]): Manifest {
  return { ...manifest, segments: [...manifest.segments, ...added] };
}

/** Returns the only encoding that `readManifest()` accepts. */
export function encodeManifest({ segments, ...header }: Manifest): Buffer {
  // `segments` sorts after all other members.
  const start = canonicalize(header).slice(0, -1) + ',"segments":[';
  return Buffer.from(start + segments.map(encodeEntry).join() + "]}\n");
}

/** Encodings by entry, since each seal writes those of all segments. */
const encodings = new WeakMap<SegmentEntry, string>();

/** Returns the canonical encoding: sorted members, and strings that need no escapes. */
function encodeEntry(entry: SegmentEntry): string {
  const known = encodings.get(entry);
  if (known !== undefined) return known;
  const { batches, bytes, events, first_event_id, head, last_event_id } = entry;
  const { path, previous_head, sealed_at, sha256 } = entry;
  const encoding = JSON.stringify({
    ...{ batches, bytes, events, first_event_id, head, last_event_id },
    ...{ path, previous_head, sealed_at, sha256 },
  });
  encodings.set(entry, encoding);
  return encoding;
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

function isSegmentEntry(value: unknown): value is SegmentEntry {
  return hasEventFacts(value, ["path", "sha256", "bytes", "sealed_at"]) &&
    isSha256Hex(value.sha256) && isCount(value.bytes) &&
    typeof value.sealed_at === "string" && TIME.test(value.sealed_at) &&
    value.path === segmentPath(value as unknown as SegmentEntry);
}

/** Whether each segment continues the chain and ids from the previous one, starting at genesis. */
function areConsecutive(segments: readonly SegmentEntry[]): boolean {
  return segments.every((segment, place) => {
    const before = segments[place - 1];
    return segment.previous_head === (before?.head ?? GENESIS_HEAD_HEX) &&
      (before === undefined || before.last_event_id < segment.first_event_id);
  });
}
