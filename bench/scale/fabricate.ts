/**
 * Makes a log of any number of single-event batches within minutes: stub segments without rows, the
 * indexes of their runs with random keys, and one real segment at the end. It serves for starts,
 * new batches and absent keys, which read nothing of old segments but their names and sizes.
 */
import { createHash } from "node:crypto";
import { mkdir, open, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GENESIS_HEAD_HEX } from "../../src/event/chain.ts";
import { KEY_HASHES } from "../../src/log/index/key_hash.ts";
import { writeIndex } from "../../src/log/index/index_writer.ts";
import { type Run, RUN_SEGMENTS, runOf } from "../../src/log/index/run_plan.ts";
import { sourceKey } from "../../src/log/index/stream_blocks.ts";
import { streamKey } from "../../src/log/read/stream_counts.ts";
import {
  encodeManifest,
  type Manifest,
  type SegmentEntry,
} from "../../src/log/segment/manifest.ts";
import { INDEX_FOLDER, MANIFEST_FILE, segmentPath } from "../../src/log/storage/file_names.ts";

const STUB_BYTES = 4096;
const CHUNK_ENTRIES = 128 * 1024;

/** An id of a time long before any real event. */
function stubId(number: number): string {
  return `00000000-${number.toString(16).padStart(4, "0")}-7000-8000-000000000000`;
}

function stubEntry(number: number, batches: number): SegmentEntry {
  const facts = {
    events: batches,
    batches,
    first_event_id: stubId(2 * number),
    last_event_id: stubId(2 * number + 1),
    previous_head: GENESIS_HEAD_HEX,
    head: GENESIS_HEAD_HEX,
    sha256: createHash("sha256").update(`stub ${number}`).digest("hex"),
    bytes: STUB_BYTES,
  };
  return { ...facts, path: segmentPath(facts), sealed_at: "2026-01-01T00:00:00.000Z" };
}

/** Returns the largest aligned runs that cover `count` segments. */
function wholeRuns(segments: readonly SegmentEntry[], count: number): Run[] {
  const runs: Run[] = [];
  for (let first = 0; first < count;) {
    const fits = (size: number) => first % size === 0 && first + size <= count;
    const level = RUN_SEGMENTS.findLastIndex(fits);
    const run = runOf(segments, level, first);
    runs.push(run);
    first += run.count;
  }
  return runs;
}

/** Yields sorted entries of `count` random keys in `segments` segments. */
function* randomEntries(count: number, segments: number): Generator<BigUint64Array, void> {
  for (let start = 0; start < count; start += CHUNK_ENTRIES) {
    const entries = new BigUint64Array(Math.min(CHUNK_ENTRIES, count - start));
    const words = new Uint32Array(entries.buffer);
    for (let place = 0; place < entries.length; place++) {
      const hash = Math.floor((start + place + Math.random()) / count * KEY_HASHES);
      words[2 * place] = hash % 2 ** 16 * 2 ** 16 + Math.floor(Math.random() * segments);
      words[2 * place + 1] = Math.floor(hash / 2 ** 16);
    }
    yield entries;
  }
}

/** Writes the index of a run whose segments have `batches` batches and record keys each. */
async function fabricateIndex(path: string, run: Run, batches: number): Promise<void> {
  const file = await open(path, "w");
  const keys = run.count * batches;
  const lastEventId = stubId(2 * (run.first + run.count) - 1);
  const streams = [sourceKey("old"), streamKey("old", "old")].map((key) => (
    { key, events: keys, lastEventId }
  ));
  let pieces: Uint8Array[] = [];
  const flush = async () => {
    await file.writev(pieces);
    pieces = [];
  };
  await writeIndex({
    coverage: run.coverage,
    batches: keys,
    streams: [streams],
    identities: randomEntries(keys, run.count),
    locations: randomEntries(keys, run.count),
  }, async (bytes) => {
    pieces.push(bytes);
    if (pieces.length >= 256) await flush();
  });
  await flush();
  await file.close();
}

/**
 * Puts stub segments in front of a log that has one real segment.
 * @param folder the log directory.
 * @param count a multiple of 8, so that runs cover all stubs.
 * @param batches batches, events and record keys of each stub.
 */
export async function fabricateLog(
  folder: string,
  manifest: Manifest,
  { count, batches }: { count: number; batches: number },
): Promise<void> {
  const stubs = Array.from({ length: count }, (_, number) => stubEntry(number, batches));
  for (const { path } of stubs) {
    await writeFile(join(folder, path), "");
    await truncate(join(folder, path), STUB_BYTES);
  }
  await mkdir(join(folder, INDEX_FOLDER), { recursive: true });
  for (const run of wholeRuns(stubs, count)) {
    await fabricateIndex(join(folder, run.path), run, batches);
  }
  const segments = [...stubs, ...manifest.segments];
  await writeFile(join(folder, MANIFEST_FILE), encodeManifest({ ...manifest, segments }));
}
