/** Builds commits, segments from commits, and hostile events for both. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { GENESIS_HEAD_HEX } from "../../src/event/chain.ts";
import { EventIdSource } from "../../src/event/event_id.ts";
import type { PreparedBatch } from "../../src/event/types.ts";
import { buildCommit } from "../../src/log/wal/commit_builder.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { readBack } from "../../src/log/sealing/segment_maker.ts";
import type { SegmentEntry } from "../../src/log/segment/manifest.ts";
import { SealedHistory, type SealedHistoryOptions } from "../../src/log/segment/sealed_history.ts";
import type { ExpectedSegment } from "../../src/log/segment/segment_metadata.ts";
import { TableCache } from "../../src/log/index/table_cache.ts";
import { Segment } from "../../src/log/segment/segment_reader.ts";
import { type SegmentBounds, writeSegment } from "../../src/log/segment/segment_writer.ts";
import type { Storage } from "../../src/log/storage/storage.ts";
import { randomValue } from "../event/support/random_json.ts";
import type { SeededRandom } from "../../tools/support/random.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { type EventOptions, preparedBatch } from "./prepared.ts";
import { commitsIn, TEST_TIME_MS, testTime } from "./test_log.ts";

const PENDING_PATH = "pending.ndjson";

/** A pending file and its contents. */
export interface PendingFile {
  bytes: Buffer;
  /** All event lines, concatenated. */
  lines: Buffer;
  entries: BatchEntry[];
  /** The chain head after the last event. */
  head: string;
}

/** A pending file with these commits, each given as a list of batches. */
export async function pendingFile(
  commits: readonly (readonly PreparedBatch[])[],
): Promise<PendingFile> {
  const { clockMs, randomBytes } = testTime();
  const ids = new EventIdSource(clockMs, randomBytes, null);
  const pieces: Buffer[] = [];
  const bodies: Buffer[] = [];
  const entries: BatchEntry[] = [];
  let head = GENESIS_HEAD_HEX;
  for (const [number, batches] of commits.entries()) {
    const nowMs = TEST_TIME_MS + number;
    const { commit, frame } = await buildCommit({ batches, ids, head, nowMs });
    pieces.push(frame);
    bodies.push(frame.subarray(frame.length - commit.bytes));
    entries.push(...commit.batches);
    head = commit.head;
  }
  return { bytes: Buffer.concat(pieces), lines: Buffer.concat(bodies), entries, head };
}

export interface WrittenSegments extends PendingFile {
  storage: SimulatedDisk;
  /** The segments' manifest entries. */
  segments: ExpectedSegment[];
}

/** Seals these commits in memory, into segments `0.parquet`, `1.parquet`, ... */
export async function sealCommits(
  commits: readonly (readonly PreparedBatch[])[],
  bounds?: SegmentBounds,
): Promise<WrittenSegments> {
  const pending = await pendingFile(commits);
  const storage = new SimulatedDisk(new Map([[PENDING_PATH, pending.bytes]]));
  const file = await storage.open(PENDING_PATH, "read");
  const unsealed = commitsIn(file, pending.bytes.length);
  const segments: ExpectedSegment[] = [];
  for (let batches = 0; batches < pending.entries.length; batches += segments.at(-1)!.batches) {
    const path = `${segments.length}.parquet`;
    const previousHead = segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
    const settings = { previousHead, ...(bounds && { bounds }) };
    const written = await writeSegment(storage, path, unsealed, settings);
    await readBack(storage, path, written);
    segments.push({ path, ...written.facts });
  }
  await file.close();
  return { ...pending, storage, segments };
}

/** Opens a segment of which nothing else is known. */
export function openSegment(storage: Storage, path: string): Segment {
  return new Segment({ path }, new TableCache(storage));
}

/** Reads the lines in a row group. */
export async function readRowGroup(segment: Segment, number: number): Promise<Buffer> {
  return Buffer.from(await segment.cachedLines(number));
}

/** The manifest entry for a segment. */
export function entryOf(segment: ExpectedSegment): SegmentEntry {
  return { ...segment, sealed_at: "2026-01-01T00:00:00.000Z" };
}

/** A sealed history with these segments. */
export function historyOf(
  storage: Storage,
  listed: readonly ExpectedSegment[],
  options?: SealedHistoryOptions,
): SealedHistory {
  const history = new SealedHistory(storage, options);
  history.add(listed.map(entryOf));
  return history;
}

/** Batches of one small event each, all in a single commit. */
export function smallBatches(count: number, source = "shop"): PreparedBatch[] {
  return Array.from(
    { length: count },
    (_, number) =>
      preparedBatch(`batch-${number}`, {
        source,
        events: [{ recordKey: `key-${number}`, stream: `stream-${number % 5}` }],
      }),
  );
}

const STREAMS = ["orders", "invoices", "0", "_.-", "x".repeat(128)];
const SOURCES = ["shop", "system_", "a.b-c", "y".repeat(128)];
const TEXTS = [
  ...['"', "\\", '","batch_id":"', '\\","kind":"', "\n", "\u2028", "\u007f", "😀é", "\\u0041"],
];
const TIMES = ["2024-02-29T23:59:59Z", "0000-01-01T00:00:00.1Z", "9999-12-31T23:59:59.999999999Z"];

/** A batch whose values are as unusual as the rules for events allow. */
export function hostileBatch(random: SeededRandom, number: number, events: number): PreparedBatch {
  return preparedBatch(`${number} ${hostileText(random)}`, {
    source: random.pick(SOURCES),
    events: Array.from({ length: events }, () => hostileEvent(random)),
  });
}

function hostileEvent(random: SeededRandom): EventOptions {
  return {
    stream: random.chance(0.1) ? `s${random.below(1000)}` : random.pick(STREAMS),
    recordKey: random.chance(0.02) ? "k".repeat(1024) : hostileText(random) || "\u0000",
    kind: random.chance(0.5) ? "upserted" : hostileText(random) || '"',
    payload: random.chance(0.01) ? hostileText(random).repeat(5000) : randomValue(random, 4),
    ...(random.chance(0.5) && { occurredAt: random.pick(TIMES) }),
  };
}

function hostileText(random: SeededRandom): string {
  return random.chance(0.3) ? random.pick(TEXTS) : random.text(12);
}

/** The lines in a buffer, including their LFs. */
export function splitLines(lines: Buffer): Buffer[] {
  const split: Buffer[] = [];
  for (let start = 0; start < lines.length;) {
    const end = lines.indexOf("\n", start) + 1;
    assert(end > 0, "lines end with LF");
    split.push(lines.subarray(start, end));
    start = end;
  }
  return split;
}
