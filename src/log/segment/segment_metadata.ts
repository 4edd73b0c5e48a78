/**
 * What the footer of a segment says of its events: canonical JSON under a key of the Parquet
 * metadata, so that opening reads no rows. No part of it grows with the segment.
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

/** What both the footer and the manifest say of the events of a segment. */
export interface EventFacts {
  events: number;
  batches: number;
  first_event_id: string;
  last_event_id: string;
  /** History chain head before the first event, 64 lowercase hex digits. */
  previous_head: string;
  /** The head after the last event. */
  head: string;
}

export const EVENT_FACTS = [
  "events",
  "batches",
  "first_event_id",
  "last_event_id",
  "previous_head",
  "head",
] as const satisfies readonly (keyof EventFacts)[];

export interface SegmentMetadata extends EventFacts {
  /** Where the key filter is (`key_filter.ts`). */
  key_filter: FilePlace;
  /** Where its streams are (`stream_index.ts`); the last `index_bytes` are the index block. */
  stream_index: FilePlace & { index_bytes: number };
}

/** What the manifest says of a segment file besides its path and time. */
export interface SegmentFacts extends EventFacts {
  /** Of the whole file, 64 lowercase hex digits. */
  sha256: string;
  /** Size of the file. */
  bytes: number;
}

/** Parses the text under METADATA_KEY. @throws {SegmentError} when it is not in canonical form. */
export function decodeMetadata(text: string): SegmentMetadata {
  const value = parse(text);
  if (!isMetadata(value)) throw new SegmentError(`${METADATA_KEY}: not the metadata of a segment`);
  if (canonicalize(value) !== text) throw new SegmentError(`${METADATA_KEY}: not canonical`);
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
  return hasEventFacts(value, ["key_filter", "stream_index"]) && value.batches <= value.events &&
    isPlace(value.key_filter, ["bytes", "offset"]) &&
    isPlace(value.stream_index, ["bytes", "index_bytes", "offset"]);
}

/** Whether a value has the event facts, each of the right form, and `others`, and nothing else. */
export function hasEventFacts(
  value: unknown,
  others: readonly string[],
): value is EventFacts & Record<string, unknown> {
  if (!hasMembers(value, [...EVENT_FACTS, ...others])) return false;
  const { events, batches, first_event_id, last_event_id, previous_head, head } = value;
  return isCount(events) && isCount(batches) &&
    isId(first_event_id) && isId(last_event_id) && first_event_id <= last_event_id &&
    isSha256Hex(previous_head) && isSha256Hex(head);
}

function hasMembers(value: unknown, names: readonly string[]): value is Record<string, unknown> {
  return typeof value === "object" && value !== null &&
    Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

function isPlace(value: unknown, members: readonly string[]): boolean {
  return hasMembers(value, members) && Object.values(value).every(isCount);
}

/** Whether a value is a positive integer. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isId(value: unknown): value is string {
  return typeof value === "string" && isEventId(value);
}
