/**
 * Measures lookups through the indexes of a fabricated log (scale/fabricate.ts): a start, memory,
 * new batches, absent keys, a page of streams and the size of the index.
 *
 *     node bench/index.ts [keys]
 */
import { Buffer } from "node:buffer";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { randomFillSync } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { median } from "../tools/support/median.ts";
import { openLog } from "../src/log/log.ts";
import { EventScan } from "../src/log/read/event_scan.ts";
import { readManifest } from "../src/log/segment/manifest.ts";
import { fileStorage } from "../src/log/storage/file_storage.ts";
import { INDEX_FOLDER } from "../src/log/storage/file_names.ts";
import { StreamPages } from "../src/service/streams.ts";
import { prepareBatch } from "../src/event/batch_reader.ts";
import { fabricateLog } from "./scale/fabricate.ts";
import { progress } from "./support/options.ts";
import { formatTable, megabytes, rounded, type Row } from "./support/report.ts";

const SEGMENT_KEYS = 262_144;
const keys = Number(process.argv[2] ?? 1e7);
const count = 8 * Math.ceil(keys / SEGMENT_KEYS / 8);
const folder = await mkdtemp(join(tmpdir(), "bench-index-"));
const storage = fileStorage(folder);

async function openHere() {
  const randomBytes = (into: Uint8Array) => void randomFillSync(into);
  return await openLog({ storage, clockMs: Date.now, randomBytes, report: progress });
}

async function build(): Promise<void> {
  const log = await openHere();
  const events = [{ stream: "s", record_key: "k", kind: "upserted", payload: 1 }];
  const body = Buffer.from(JSON.stringify({ batch_id: "first", source: "new", events }));
  await log.append([prepareBatch(body)]);
  await log.seal(() => {});
  await log.close();
  await fabricateLog(folder, (await readManifest(storage))!, { count, batches: SEGMENT_KEYS });
}

async function indexBytes(): Promise<number> {
  let sizeBytes = 0;
  for (const name of await readdir(join(folder, INDEX_FOLDER))) {
    sizeBytes += (await stat(join(folder, INDEX_FOLDER, name))).size;
  }
  return sizeBytes;
}

async function timed(row: string, times: number, act: (n: number) => unknown): Promise<Row> {
  const tookMs: number[] = [];
  for (let n = 0; n < times; n++) {
    const startMs = performance.now();
    await act(n);
    tookMs.push(performance.now() - startMs);
  }
  return {
    row,
    "first ms": rounded(tookMs[0]!, 2),
    "p50 ms": rounded(median(tookMs), 3),
    "slowest ms": rounded(Math.max(...tookMs), 2),
    "MB": megabytes(process.memoryUsage.rss()),
  };
}

try {
  await build();
  const total = count * SEGMENT_KEYS;
  const perKey = (await indexBytes() / (2 * total)).toFixed(2);
  progress(`${total} batches, each with a record key, in ${count} segments; ${perKey} bytes a key`);
  const start = await timed("start", 1, async () => await (await openHere()).close());
  const log = await openHere();
  const { sealed } = log.files;
  const page = { source: undefined, after: undefined, through: undefined, limit: 100 };
  const pages = new StreamPages(log.files);
  const replayAbsent = async (recordKey: string) => {
    const limits = { limitEvents: 100, limitBytes: 2 ** 20 };
    const scan = new EventScan(log.snapshot, {
      after: undefined,
      filter: { recordKey },
      ...limits,
    });
    while (await scan.next() !== null) { /* Nothing matches. */ }
  };
  const rows = [
    start,
    await timed("a new batch", 2000, (n) => sealed.findBatch("new", `fresh ${n}`)),
    await timed("a new batch, again", 20_000, (n) => sealed.findBatch("new", `more ${n}`)),
    await timed("a known batch of the last segment", 200, () => sealed.findBatch("new", "first")),
    await timed("the last event of an old stream", 200, () => sealed.streamFrontier("old", "old")),
    await timed("replay of an absent key", 200, (n) => replayAbsent(`absent ${n}`)),
    await timed("a page of streams", 200, () => pages.page(page)),
  ];
  await log.close();
  process.stdout.write(formatTable(rows));
} finally {
  await rm(folder, { recursive: true });
}
