/**
 * What the footer of a segment says of the events in it: canonical JSON under two keys of the
 * Parquet metadata, so that nothing that a start or the writer needs is in the rows. What grows
 * with the number of streams or sources stands last, in order, and is read by parts
 * (`segment_list.ts`).
 */
import { canonicalize } from "../../event/json/canonical_json.ts";
import { isEventId } from "../../event/event_id.ts";
import { isSha256Hex } from "../../event/hash.ts";
import { decoding, SegmentError } from "../parquet/segment_error.ts";

/** The facts of a segment, then its streams. */
export const METADATA_KEY = "service.segment";
/** Its sources. */
export const SOURCES_KEY = "service.sources";

/** Events of one stream in a segment. */
export interface StreamCount {
  source: string;
  stream: string;
  events: number;
  last_event_id: string;
}

/** The last event of a source in a segment. */
export interface SourceFrontier {
  last_event_id: string;
  source: string;
}

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
}

/** What the manifest says of a segment file beside its path and time. */
export interface SegmentFacts extends Omit<SegmentMetadata, "key_filter"> {
  /** Of the whole file, 64 lowercase hex digits. */
  sha256: string;
  /** Size of the file. */
  bytes: number;
}

/** What stands between the facts and the list of streams, and behind that. */
const STREAMS_START = '"streams":[';
const STREAMS_END = "]}";

/** Entries that are spelled at a time: a list may be as long as the segment has events. */
const PIECE_ENTRIES = 512;

/** The text under METADATA_KEY, in pieces. @param streams in order of source, then stream. */
export function* metadataPieces(
  metadata: SegmentMetadata,
  streams: Iterable<StreamCount>,
): Generator<string, void> {
  yield canonicalize({ ...metadata, streams: [] }).slice(0, -STREAMS_END.length);
  yield* listPieces(streams);
  yield STREAMS_END;
}

/** The text under SOURCES_KEY, in pieces. @param sources in order. */
export function* sourcesPieces(sources: readonly SourceFrontier[]): Generator<string, void> {
  yield "[";
  yield* listPieces(sources);
  yield "]";
}

function* listPieces(entries: Iterable<unknown>): Generator<string, void> {
  let isFirst = true;
  for (const piece of inPieces(entries)) {
    yield (isFirst ? "" : ",") + canonicalize(piece).slice(1, -1);
    isFirst = false;
  }
}

function* inPieces<Entry>(entries: Iterable<Entry>): Generator<Entry[], void> {
  let piece: Entry[] = [];
  for (const entry of entries) {
    if (piece.push(entry) < PIECE_ENTRIES) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}

/**
 * Reads the facts of a segment from the beginning of its metadata.
 * @returns them, and the number of characters before the first stream.
 * @throws {SegmentError} when that is not how `metadataPieces()` begins.
 */
export function decodeMetadata(
  beginning: string,
): { metadata: SegmentMetadata; streamsStart: number } {
  const listAt = beginning.indexOf(STREAMS_START);
  const text = beginning.slice(0, listAt + STREAMS_START.length) + STREAMS_END;
  const value = decoding(METADATA_KEY, (): unknown => listAt < 0 ? null : JSON.parse(text));
  if (!isMetadata(value)) throw new SegmentError(`${METADATA_KEY}: not the metadata of a segment`);
  const { streams, ...metadata } = value;
  if ([...metadataPieces(metadata, streams)].join("") !== text) {
    throw new SegmentError(`${METADATA_KEY}: not canonical`);
  }
  return { metadata, streamsStart: text.length - STREAMS_END.length };
}

function isMetadata(value: unknown): value is SegmentMetadata & { streams: [] } {
  if (!hasMembers(value, METADATA_MEMBERS)) return false;
  const { events, batches, first_event_id, last_event_id, previous_head, head } = value;
  return isCount(events) && isCount(batches) && batches <= events &&
    isId(first_event_id) && isId(last_event_id) && first_event_id <= last_event_id &&
    isSha256Hex(previous_head) && isSha256Hex(head) && isPlace(value.key_filter) &&
    Array.isArray(value.streams);
}

const METADATA_MEMBERS = [
  ...["events", "batches", "first_event_id", "last_event_id", "key_filter"],
  ...["previous_head", "head", "streams"],
];

function hasMembers(value: unknown, names: string[]): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

function isPlace(value: unknown): boolean {
  return hasMembers(value, ["bytes", "offset"]) && isCount(value.bytes) && isCount(value.offset);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isId(value: unknown): value is string {
  return typeof value === "string" && isEventId(value);
}
