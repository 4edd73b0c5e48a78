/**
 * Measures lookups through the indexes of a fabricated log (scale/fabricate.ts): a start, memory,
 * new batches, absent keys, a page of streams, the size of the index and the rate of merges.
 *
 *     node bench/index.ts [keys] [folder]
 */
import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { randomFillSync } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { openLog } from "../src/log/log.ts";
import { EventScan } from "../src/log/read/event_scan.ts";
import { readManifest } from "../src/log/segment/manifest.ts";
import { makeIndex } from "../src/log/sealing/index_merging.ts";
import { runOf } from "../src/log/index/run_plan.ts";
import { fileStorage } from "../src/log/storage/file_storage.ts";
import { INDEX_FOLDER, INDEX_TEMPORARY_FILE } from "../src/log/storage/file_names.ts";
import { StreamPages } from "../src/service/streams.ts";
import { prepareBatch } from "../src/event/batch_reader.ts";
import { fabricateIndex, fabricateLog } from "./scale/fabricate.ts";

const SEGMENT_KEYS = 262_144;
const MIB = 1024 * 1024;
const keys = Number(process.argv[2] ?? 1e7);
const count = 8 * Math.ceil(keys / SEGMENT_KEYS / 8);
const kept = process.argv[3];
const folder = kept ?? await mkdtemp(join(tmpdir(), "bench-index-"));

function print(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(44)} ${value}\n`);
}

async function openHere() {
  return await openLog({
    storage: fileStorage(folder),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report: (line) => void process.stderr.write(`${line}\n`),
  });
}

async function build(): Promise<void> {
  await mkdir(folder, { recursive: true });
  const log = await openHere();
  const events = [{ stream: "s", record_key: "k", kind: "upserted", payload: 1 }];
  const body = Buffer.from(JSON.stringify({ batch_id: "first", source: "new", events }));
  await log.append([prepareBatch(body)]);
  await log.seal(() => {});
  await log.close();
  const manifest = (await readManifest(fileStorage(folder)))!;
  await fabricateLog(folder, manifest, { count, batches: SEGMENT_KEYS });
}

async function indexBytes(): Promise<number> {
  let sizeBytes = 0;
  for (const name of await readdir(join(folder, INDEX_FOLDER))) {
    sizeBytes += (await stat(join(folder, INDEX_FOLDER, name))).size;
  }
  return sizeBytes;
}

/** Prints the first, the median and the 99th percentile of `times` calls. */
async function time(what: string, times: number, act: (n: number) => unknown) {
  const tookMs: number[] = [];
  for (let n = 0; n < times; n++) {
    const startMs = performance.now();
    await act(n);
    tookMs.push(performance.now() - startMs);
  }
  const first = tookMs[0]!;
  const sorted = tookMs.sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (times - 1))]!.toFixed(3);
  print(what, `first ${first.toFixed(2)} ms, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

const rss = () => `${Math.round(process.memoryUsage.rss() / MIB)} MiB`;

if (kept === undefined || !(await readdir(kept).catch((): string[] => [])).includes(INDEX_FOLDER)) {
  await build();
}
const total = count * SEGMENT_KEYS;
print("batches, each with a record key", `${total} in ${count} segments`);
print("bytes a key (2 keys a batch)", (await indexBytes() / (2 * total)).toFixed(2));
const startMs = performance.now();
const log = await openHere();
print("start", `${(performance.now() - startMs).toFixed(0)} ms, ${rss()}`);
await time(
  "a new batch, each in turn",
  2000,
  (n) => log.files.sealed.findBatch("new", `fresh ${n}`),
);
print("memory", rss());
await time("a new batch, again", 20_000, (n) => log.files.sealed.findBatch("new", `more ${n}`));
await time(
  "a known batch of the last segment",
  200,
  () => log.files.sealed.findBatch("new", "first"),
);
await time(
  "the last event of an old stream",
  200,
  () => log.files.sealed.streamFrontier("old", "old"),
);
await time("replay of an absent key", 200, async (n) => {
  const filter = { recordKey: `absent ${n}` };
  const scan = new EventScan(log.snapshot, {
    ...{ after: undefined, filter, limitEvents: 100, limitBytes: MIB },
  });
  while (await scan.next() !== null) { /* Nothing matches. */ }
});
const pages = new StreamPages(log.files);
await time(
  "a page of streams",
  200,
  () => pages.page({ source: undefined, after: undefined, through: undefined, limit: 100 }),
);
await log.close();
print("memory", rss());

// Merge eight runs of eight segments.
const scratch = await mkdtemp(join(tmpdir(), "bench-merge-"));
await mkdir(join(scratch, INDEX_FOLDER));
const names = Array.from({ length: 64 }, (_, n) => (
  { sha256: String(n).padStart(64, "0"), first_event_id: "a", last_event_id: "b" }
));
const inputs = [];
for (let first = 0; first < 64; first += 8) {
  const run = { ...runOf(names, 1, first), path: `${INDEX_FOLDER}/${first}` };
  await fabricateIndex(join(scratch, run.path), run, SEGMENT_KEYS / 4);
  inputs.push({ path: run.path, ordinal: first, coverage: run.coverage });
}
const cpuBefore = process.cpuUsage();
await makeIndex(fileStorage(scratch), { run: runOf(names, 2, 0), inputs });
const { user, system } = process.cpuUsage(cpuBefore);
const merged = 2 * 64 * SEGMENT_KEYS / 4;
const { size } = await stat(join(scratch, INDEX_TEMPORARY_FILE));
print(
  "merge of 8 runs",
  `${merged} keys, ${((user + system) / merged).toFixed(3)} µs CPU a key, ` +
    `${(size / merged).toFixed(2)} bytes a key`,
);
await rm(scratch, { recursive: true });
if (kept === undefined) await rm(folder, { recursive: true });
