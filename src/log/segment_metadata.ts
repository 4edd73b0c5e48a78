/**
 * What the footer of a segment says of the events in it: canonical JSON under one key of the Parquet
 * metadata. Opening a log reads this and no row.
 */
import { canonicalize } from "../event/canonical_json.ts";
import { isEventId } from "../event/event_id.ts";
import { nameFault } from "../event/names.ts";
import { decoding, SegmentError } from "./segment_error.ts";

export const METADATA_KEY = "service.segment";

/** Events of one stream in a segment. */
export interface StreamCount {
  source: string;
  stream: string;
  events: number;
  last_event_id: string;
}

export interface SegmentMetadata {
  events: number;
  batches: number;
  first_event_id: string;
  last_event_id: string;
  /** History chain head before the first event, 64 lowercase hex digits. */
  previous_head: string;
  /** The head after the last event. */
  head: string;
  /** In order of source, then stream. */
  streams: StreamCount[];
}

/** What the manifest says of a segment file beside its path and time. */
export interface SegmentFacts extends Omit<SegmentMetadata, "streams"> {
  /** Of the whole file, 64 lowercase hex digits. */
  sha256: string;
  /** Size of the file. */
  bytes: number;
}

export function encodeMetadata(metadata: SegmentMetadata): string {
  return canonicalize(metadata);
}

const HEX_64 = /^[0-9a-f]{64}$/;

/** @throws {SegmentError} when the text is not what `encodeMetadata()` writes. */
export function decodeMetadata(text: string): SegmentMetadata {
  const metadata = decoding(METADATA_KEY, (): unknown => JSON.parse(text));
  const isRight = isMetadata(metadata) && encodeMetadata(metadata) === text;
  if (!isRight) throw new SegmentError(`${METADATA_KEY}: not the metadata of a segment`);
  return metadata;
}

function isMetadata(value: unknown): value is SegmentMetadata {
  if (!hasMembers(value, METADATA_MEMBERS)) return false;
  const { events, batches, first_event_id, last_event_id, previous_head, head, streams } = value;
  return isCount(events) && isCount(batches) && batches <= events &&
    isId(first_event_id) && isId(last_event_id) && first_event_id <= last_event_id &&
    isHash(previous_head) && isHash(head) &&
    Array.isArray(streams) && streams.every(isStreamCount) && areOrdered(streams) &&
    streams.reduce((sum, stream) => sum + stream.events, 0) === events;
}

const METADATA_MEMBERS = [
  ...["events", "batches", "first_event_id", "last_event_id"],
  ...["previous_head", "head", "streams"],
];

function isStreamCount(value: unknown): value is StreamCount {
  return hasMembers(value, ["source", "stream", "events", "last_event_id"]) &&
    isName(value.source) && isName(value.stream) && isCount(value.events) &&
    isId(value.last_event_id);
}

function areOrdered(streams: StreamCount[]): boolean {
  return streams.every((stream, place) => {
    const before = streams[place - 1];
    return before === undefined || compareStreams(before, stream) < 0;
  });
}

/** Order by source, then stream. Names are ASCII, so that this is their order in bytes too. */
export function compareStreams(
  a: Pick<StreamCount, "source" | "stream">,
  b: Pick<StreamCount, "source" | "stream">,
): number {
  if (a.source !== b.source) return a.source < b.source ? -1 : 1;
  if (a.stream === b.stream) return 0;
  return a.stream < b.stream ? -1 : 1;
}

function hasMembers(value: unknown, names: string[]): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isId(value: unknown): value is string {
  return typeof value === "string" && isEventId(value);
}

function isHash(value: unknown): value is string {
  return typeof value === "string" && HEX_64.test(value);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && nameFault(value) === null;
}
