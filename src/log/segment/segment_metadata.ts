/**
 * What the footer of a segment says of the events in it: canonical JSON under a key of the Parquet
 * metadata, so that a start reads no rows, and no list that grows with the segment.
 */
import { canonicalize } from "../../event/json/canonical_json.ts";
import { isEventId } from "../../event/event_id.ts";
import { isSha256Hex } from "../../event/hash.ts";
import { SegmentError } from "../parquet/segment_error.ts";

export const METADATA_KEY = "service.segment";

/** A part of a file. */
export interface FilePlace {
  bytes: number;
  offset: number;
}

export interface SegmentMetadata {
  events: number;
  batches: number;
  first_event_id: string;
  last_event_id: string;
  /** Where the filter over the keys of the segment is (`key_filter.ts`). */
  key_filter: FilePlace;
  /** History chain head before the first event, 64 lowercase hex digits. */
  previous_head: string;
  /** The head after the last event. */
  head: string;
  /** Where its streams are (`stream_index.ts`); the last `index_bytes` are the index block. */
  stream_index: FilePlace & { index_bytes: number };
}

/** What the manifest says of a segment file beside its path and time. */
export interface SegmentFacts extends Omit<SegmentMetadata, "key_filter" | "stream_index"> {
  /** Of the whole file, 64 lowercase hex digits. */
  sha256: string;
  /** Size of the file. */
  bytes: number;
}

/** The text under METADATA_KEY. */
export function encodeMetadata(metadata: SegmentMetadata): string {
  return canonicalize(metadata);
}

/** @throws {SegmentError} when that is not what `encodeMetadata()` gives. */
export function decodeMetadata(text: string): SegmentMetadata {
  const value = parse(text);
  if (!isMetadata(value)) throw new SegmentError(`${METADATA_KEY}: not the metadata of a segment`);
  if (encodeMetadata(value) !== text) throw new SegmentError(`${METADATA_KEY}: not canonical`);
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SegmentError(`${METADATA_KEY}: ${(error as Error).message}`, { cause: error });
  }
}

function isMetadata(value: unknown): value is SegmentMetadata {
  if (!hasMembers(value, METADATA_MEMBERS)) return false;
  const { events, batches, first_event_id, last_event_id, previous_head, head } = value;
  return isCount(events) && isCount(batches) && batches <= events &&
    isId(first_event_id) && isId(last_event_id) && first_event_id <= last_event_id &&
    isSha256Hex(previous_head) && isSha256Hex(head) &&
    isPlace(value.key_filter, ["bytes", "offset"]) &&
    isPlace(value.stream_index, ["bytes", "index_bytes", "offset"]);
}

const METADATA_MEMBERS = [
  ...["events", "batches", "first_event_id", "last_event_id", "key_filter"],
  ...["previous_head", "head", "stream_index"],
];

function hasMembers(value: unknown, names: string[]): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

function isPlace(value: unknown, members: string[]): boolean {
  return hasMembers(value, members) && Object.values(value).every(isCount);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isId(value: unknown): value is string {
  return typeof value === "string" && isEventId(value);
}
