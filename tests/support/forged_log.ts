/**
 * Changes the files of a log as someone would who knows the format: framing, names and inventory
 * are made to fit again, so that only what is checked beyond them can tell.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { BloomBuilder } from "hyparquet-writer/src/bloom.js";
import { canonicalize } from "../../src/event/canonical_json.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import {
  type BatchEntry,
  type Commit,
  decodeCommitHeader,
  encodeCommitHeader,
} from "../../src/log/commit_frame.ts";
import { MANIFEST_FILE, PENDING_FOLDER, segmentPath } from "../../src/log/layout.ts";
import type { Manifest, SegmentEntry } from "../../src/log/manifest.ts";
import { encodeMetadata, METADATA_KEY } from "../../src/log/segment_metadata.ts";
import { openSegment } from "../../src/log/segment_reader.ts";
import { batchValues, RowGroupRows } from "../../src/log/segment_rows.ts";
import {
  COLUMN_NAMES,
  columnNumber,
  FILTERED_COLUMNS,
  SEGMENT_SCHEMA,
} from "../../src/log/segment_schema.ts";
import { snappyCompress } from "../../src/log/snappy.ts";
import { StoredEvent } from "../../src/log/stored_event.ts";
import { StreamCounter } from "../../src/log/stream_counter.ts";
import { MemoryStorage, type Tree } from "./memory_storage.ts";

/** One commit of a tail or pending file; its lines without their LF. */
export interface CommitParts {
  commit: Commit;
  lines: string[];
}

export function splitCommits(bytes: Uint8Array): CommitParts[] {
  const buffer = Buffer.from(bytes);
  const commits: CommitParts[] = [];
  for (let start = 0; start < buffer.length;) {
    const lineEnd = buffer.indexOf("\n", start);
    const { commit } = decodeCommitHeader(buffer.subarray(start, lineEnd))!;
    start = lineEnd + 1 + commit.bytes;
    const lines = buffer.toString("utf8", lineEnd + 1, start).split("\n").slice(0, -1);
    commits.push({ commit, lines });
  }
  return commits;
}

/** The file of these commits, each with the length and the sha256 that it has now. */
export function joinCommits(commits: readonly CommitParts[]): Buffer {
  return Buffer.concat(commits.flatMap(({ commit, lines }) => {
    const body = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    return [encodeCommitHeader({ ...commit, bytes: body.length }, body), body];
  }));
}

/** A tree whose file at `path` has other commits. */
export function withCommits(
  tree: Tree,
  path: string,
  change: (commits: CommitParts[]) => CommitParts[] | void,
): Tree {
  const commits = splitCommits(tree.get(path)!);
  return new Map(tree).set(path, joinCommits(change(commits) ?? commits));
}

/** Paths of the pending files of a tree. */
export function pendingPaths(tree: Tree): string[] {
  return [...tree.keys()].filter((path) => path.startsWith(`${PENDING_FOLDER}/`)).sort();
}

export function manifestOf(tree: Tree): Manifest {
  return JSON.parse(Buffer.from(tree.get(MANIFEST_FILE)!).toString());
}

export function withManifest(tree: Tree, manifest: unknown): Tree {
  return new Map(tree).set(MANIFEST_FILE, Buffer.from(canonicalize(manifest) + "\n"));
}

/** A tree whose `number`th segment is another file, which the manifest lists by its new facts. */
export function withSegment(
  tree: Tree,
  number: number,
  bytes: Uint8Array,
  facts: Partial<SegmentEntry> = {},
): Tree {
  const { segments, ...rest } = manifestOf(tree);
  const before = segments[number]!;
  const entry = { ...before, ...facts, sha256: sha256Hex(bytes), bytes: bytes.length };
  const path = segmentPath(entry);
  const changed = new Map(tree);
  changed.delete(before.path);
  changed.set(path, bytes);
  return withManifest(changed, { ...rest, segments: segments.with(number, { ...entry, path }) });
}

/** A row of a segment: an event line without its LF, and the batch that it says it is of. */
export interface Row {
  line: string;
  entry: BatchEntry;
}

/** All rows of a segment. The entries have no more of a batch than is in a row. */
export async function readRows(tree: Tree, path: string): Promise<Row[]> {
  const segment = await openSegment(new MemoryStorage(tree), path);
  const rows: Row[] = [];
  for (let number = 0; number < segment.rowGroups.length; number++) {
    const lines = (await segment.readRowGroup(number)).toString().split("\n").slice(0, -1);
    const { batch_digest } = await segment.readColumns(number, ["batch_digest"]);
    lines.forEach((line, row) => {
      const { event_id, source, batch_id } = JSON.parse(line);
      const { bytes, starts, ends } = batch_digest;
      const digest = bytes.toString("hex", starts[row]!, ends[row]!);
      const ids = { first_event_id: event_id, last_event_id: event_id };
      rows.push({ line, entry: { source, batch_id, batch_digest: digest, events: 1, ...ids } });
    });
  }
  await segment.close();
  return rows;
}

/**
 * A segment file of these rows in this order, whatever they are, that says of itself what `facts`
 * say.
 */
export async function forgeSegment(rows: readonly Row[], facts: SegmentEntry): Promise<Buffer> {
  const { events, batches, first_event_id, last_event_id, previous_head, head } = facts;
  const streams = new StreamCounter();
  const taken = new RowGroupRows();
  const event = new StoredEvent();
  let last: Row | null = null;
  let values = null;
  for (const row of rows) {
    const line = Buffer.from(row.line);
    assert.ok(event.take(line, 0, line.length));
    const isSame = last !== null && values !== null && row.entry.batch_id === last.entry.batch_id &&
      row.entry.batch_digest === last.entry.batch_digest && row.entry.source === last.entry.source;
    if (!isSame) values = batchValues(row.entry);
    streams.add(row.entry.source, taken.add(event, values!), 1, event.eventId);
    last = row;
  }
  const writer = new ByteWriter();
  const parquet = new ParquetWriter({
    writer,
    schema: SEGMENT_SCHEMA,
    codec: "SNAPPY",
    compressors: { SNAPPY: snappyCompress },
  });
  const metadata = { events, batches, first_event_id, last_event_id, previous_head, head };
  await parquet.write({
    columnData: taken.columnData().map((column) => ({ ...column, statistics: true })),
    rowGroupSize: rows.length,
  });
  addFilters(parquet, taken);
  const value = encodeMetadata({ ...metadata, streams: streams.list() });
  parquet.kvMetadata = [{ key: METADATA_KEY, value }];
  await parquet.finish();
  return Buffer.from(writer.getBytes());
}

function addFilters(parquet: ParquetWriter, rows: RowGroupRows): void {
  const columns = parquet.pendingIndexes.slice(-COLUMN_NAMES.length);
  for (const name of FILTERED_COLUMNS) {
    const element = SEGMENT_SCHEMA.find((element) => element.name === name)!;
    const builder = new BloomBuilder(element, { fpp: 0.01 });
    for (const value of rows.filteredValues(name)) builder.insert(value);
    columns[columnNumber(name)]!.bloomFilter = builder.finalize()!;
  }
}

/** A tree whose `number`th segment has other rows, which the manifest counts and names anew. */
export async function withRows(
  tree: Tree,
  number: number,
  change: (rows: Row[]) => Row[] | void,
): Promise<Tree> {
  const before = manifestOf(tree).segments[number]!;
  const read = await readRows(tree, before.path);
  const rows = change(read) ?? read;
  const ids = rows.map(({ entry }) => entry.first_event_id).sort();
  const batches =
    rows.filter(({ entry }, row) =>
      entry.batch_id !== rows[row - 1]?.entry.batch_id ||
      entry.batch_digest !== rows[row - 1]?.entry.batch_digest
    ).length;
  const facts = {
    events: rows.length,
    batches,
    first_event_id: ids[0]!,
    last_event_id: ids.at(-1)!,
  };
  const bytes = await forgeSegment(rows, { ...before, ...facts });
  return withSegment(tree, number, bytes, facts);
}
