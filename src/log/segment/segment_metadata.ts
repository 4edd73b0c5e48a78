/**
 * Segment metadata: canonical JSON under a key in the Parquet footer, so that opening a segment
 * reads no rows.
 */
import { canonicalize } from "../../event/json/canonical_json.ts";
import { isEventId } from "../../event/event_id.ts";
import { isSha256Hex } from "../../event/hash.ts";
import { SegmentError } from "../storage/errors.ts";

export const METADATA_KEY = "service.segment";

/** Metadata about the events in a segment, in both footer and manifest. */
export interface EventFacts {
  events: number;
  batches: number;
  first_event_id: string;
  last_event_id: string;
  /** History chain head before the first event, 64 lowercase hex digits. */
  previous_head: string;
  /** Chain head after the last event. */
  head: string;
}

const FACT_CHECKS: Record<keyof EventFacts, (value: unknown) => boolean> = {
  events: isCount,
  batches: isCount,
  first_event_id: isEventId,
  last_event_id: isEventId,
  previous_head: isSha256Hex,
  head: isSha256Hex,
};
const EVENT_FACTS = Object.keys(FACT_CHECKS) as (keyof EventFacts)[];

export interface SegmentMetadata extends EventFacts {
  /** Per row group, the CRC-32 of each column chunk: 8 lowercase hex digits, in schema order. */
  chunk_crcs: readonly string[];
  /** Where the segment's own index is in the file. */
  index_start: number;
  index_bytes: number;
}

/** The expected metadata for the segment at a path. */
export interface ExpectedSegment extends EventFacts {
  /** Relative to the log directory. */
  path: string;
  /** SHA-256 of the whole file, 64 lowercase hex digits. */
  sha256: string;
  bytes: number;
}

/** What is known of a segment that has no path yet. */
export type SegmentFacts = Omit<ExpectedSegment, "path">;

const CHUNK_CRCS = /^(?:[0-9a-f]{8})+$/;

/** Parses the JSON under METADATA_KEY. @throws {SegmentError} if it is invalid or not canonical. */
export function decodeMetadata(text: string): SegmentMetadata {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new SegmentError(`${METADATA_KEY}: ${(cause as Error).message}`, { cause });
  }
  const isMetadata = hasEventFacts(value, ["chunk_crcs", "index_start", "index_bytes"]) &&
    value.batches <= value.events && isCount(value.index_start) && isCount(value.index_bytes) &&
    Array.isArray(value.chunk_crcs) &&
    value.chunk_crcs.every((crcs) => typeof crcs === "string" && CHUNK_CRCS.test(crcs));
  if (!isMetadata) throw new SegmentError(`${METADATA_KEY}: invalid segment metadata`);
  if (canonicalize(value) !== text) throw new SegmentError(`${METADATA_KEY}: not canonical JSON`);
  return value as unknown as SegmentMetadata;
}

/** Checks that the footer matches the manifest. @throws {SegmentError} */
export function checkFacts(metadata: EventFacts, expected: Partial<EventFacts>): void {
  for (const name of EVENT_FACTS) {
    const fact = expected[name];
    if (fact === undefined || fact === metadata[name]) continue;
    throw new SegmentError(`${name}: ${metadata[name]} in the footer, ${fact} in the manifest`);
  }
}

/** Whether a value has exactly the members of `EventFacts`, all valid, and those in `others`. */
export function hasEventFacts(
  value: unknown,
  others: readonly string[],
): value is EventFacts & Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const members = value as EventFacts & Record<string, unknown>;
  return Object.keys(value).length === EVENT_FACTS.length + others.length &&
    others.every((name) => Object.hasOwn(value, name)) &&
    EVENT_FACTS.every((name) => FACT_CHECKS[name](members[name])) &&
    members.first_event_id <= members.last_event_id;
}

/** Whether a value is a positive integer. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
