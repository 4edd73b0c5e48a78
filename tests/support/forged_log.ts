/**
 * Forges the files of a log as an attacker who knows the format would. Framing, names and inventory
 * stay consistent, so only deeper checks can detect the change.
 */
import { Buffer } from "node:buffer";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import {
  type BatchEntry,
  type Commit,
  encodeCommit,
  parseCommitHeader,
} from "../../src/log/wal/commit_frame.ts";
import { MANIFEST_FILE, PENDING_FOLDER, segmentPath } from "../../src/log/storage/file_names.ts";
import type { Manifest, SegmentEntry } from "../../src/log/segment/manifest.ts";
import type { EventFacts } from "../../src/log/segment/segment_metadata.ts";
import { type ForgedRow, forgeSegment } from "./forged_segment.ts";
import { SimulatedDisk, type Tree } from "./simulated_disk.ts";
import { openSegment, readRowGroup } from "./test_segment.ts";

/** A commit in a tail or pending file, with its lines without LF. */
export interface CommitParts {
  commit: Commit;
  lines: string[];
}

export function splitCommits(bytes: Uint8Array): CommitParts[] {
  const buffer = Buffer.from(bytes);
  const commits: CommitParts[] = [];
  for (let start = 0; start < buffer.length;) {
    const lineEnd = buffer.indexOf("\n", start);
    const { commit } = parseCommitHeader(buffer, start, lineEnd)!;
    start = lineEnd + 1 + commit.bytes;
    const lines = buffer.toString("utf8", lineEnd + 1, start).split("\n").slice(0, -1);
    commits.push({ commit, lines });
  }
  return commits;
}

/** A file with these commits, with each length and sha256 recomputed. */
export function joinCommits(commits: readonly CommitParts[]): Buffer {
  return Buffer.concat(commits.map(({ commit, lines }) => {
    const body = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    return encodeCommit(commit, [body]).frame;
  }));
}

/** A copy of a tree with `bytes` as the file at `path`. */
export function withFile(tree: Tree, path: string, bytes: Uint8Array): Tree {
  return new Map(tree).set(path, bytes);
}

/** A copy of a tree without the file at `path`. */
export function without(tree: Tree, path: string): Tree {
  const changed = new Map(tree);
  changed.delete(path);
  return changed;
}

/** A copy of a tree with `change` applied to the commits in the file at `path`. */
export function withCommits(
  tree: Tree,
  path: string,
  change: (commits: CommitParts[]) => CommitParts[] | void,
): Tree {
  const commits = splitCommits(tree.get(path)!);
  return new Map(tree).set(path, joinCommits(change(commits) ?? commits));
}

/** The paths of a tree's pending files. */
export function pendingPaths(tree: Tree): string[] {
  return [...tree.keys()].filter((path) => path.startsWith(`${PENDING_FOLDER}/`)).sort();
}

export function manifestOf(tree: Tree): Manifest {
  return JSON.parse(Buffer.from(tree.get(MANIFEST_FILE)!).toString());
}

export function withManifest(tree: Tree, manifest: unknown): Tree {
  return new Map(tree).set(MANIFEST_FILE, Buffer.from(canonicalize(manifest) + "\n"));
}

/** A copy of a tree with the `number`th segment replaced and the manifest updated. */
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
  const changed = withFile(without(tree, before.path), path, bytes);
  return withManifest(changed, { ...rest, segments: segments.with(number, { ...entry, path }) });
}

/** A row in a segment: an event line without LF, and its batch columns. */
export interface Row {
  line: string;
  entry: BatchEntry;
}

/** All rows in a segment, each with an entry as if it were a batch of one event. */
export async function readRows(tree: Tree, path: string): Promise<Row[]> {
  const segment = openSegment(new SimulatedDisk(tree), path);
  const rows: Row[] = [];
  const rowGroups = await segment.rowGroups();
  for (const number of rowGroups.keys()) {
    const lines = (await readRowGroup(segment, number)).toString().split("\n").slice(0, -1);
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

/** The same rows, with one shared entry object per batch. */
function forgedRows(rows: readonly Row[]): ForgedRow[] {
  let last: BatchEntry | null = null;
  return rows.map(({ line, entry }) => {
    if (last === null || !isSameBatch(last, entry)) last = entry;
    return { line: Buffer.from(`${line}\n`), entry: last };
  });
}

function isSameBatch(a: BatchEntry, b: BatchEntry): boolean {
  return a.source === b.source && a.batch_id === b.batch_id && a.batch_digest === b.batch_digest;
}

/**
 * A copy of a tree with different rows in the `number`th segment, in this order even if invalid,
 * and a rebuilt manifest. The chain heads stay as they are.
 * @param facts override the metadata in the footer and in the manifest.
 */
export async function withRows(
  tree: Tree,
  number: number,
  change: (rows: Row[]) => Row[] | void,
  facts: Partial<EventFacts> = {},
): Promise<Tree> {
  const { path, previous_head, head } = manifestOf(tree).segments[number]!;
  const read = await readRows(tree, path);
  const groups = [forgedRows(change(read) ?? read)];
  const metadata = { previous_head, head, ...facts };
  const { storage, entry } = await forgeSegment({ groups, metadata });
  return withSegment(tree, number, storage.contents(entry.path), entry);
}
