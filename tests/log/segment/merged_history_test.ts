/**
 * Lookups through the indexes of runs: they answer as the segments do, while indexes are being
 * merged, after a crash at any step, and with an index that is missing, damaged or of another log.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { Run } from "../../../src/log/index/run_plan.ts";
import {
  mergedStreams,
  type StreamEntry,
  type StreamSource,
} from "../../../src/log/read/stream_counts.ts";
import { readLines } from "../../../src/log/read/snapshot.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import { type MergePlan, SealedHistory } from "../../../src/log/segment/sealed_history.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { makeIndex, mergeNext } from "../../../src/log/sealing/index_merging.ts";
import { INDEX_FOLDER, INDEX_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { coverageIn, indexIn, rewriteIndex } from "../../support/forged_index.ts";
import { mergeAll } from "../../support/merging.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { ALL_DONE, NAMES_ONLY, SYNCED_ONLY } from "../../support/simulated_crash.ts";
import { changesDisk, SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { entryOf, sealCommits } from "../../support/test_segment.ts";

/** One run of 64 segments, one of 8, and 2 more segments. */
const SEGMENTS = 74;

function sealMany(source: string) {
  const commits = Array.from({ length: SEGMENTS }, (_, n) => [
    preparedBatch(`${source}-${n}`, {
      source,
      events: [
        { stream: `s-${n % 10}`, recordKey: `key-${n % 20}` },
        { stream: "all", recordKey: `only-${n}` },
      ],
    }),
    preparedBatch(`b-${n}`, { source: `source-${n % 30}`, events: [{ stream: "t" }] }),
  ]);
  return sealCommits(commits, { events: 1, bytes: Infinity });
}

const SEALED = sealMany("a");
const ENTRIES = SEALED.then(({ segments }) => segments.map(entryOf));

async function openHistory(storage: SimulatedDisk, segments = SEGMENTS) {
  const reports: string[] = [];
  const history = new SealedHistory(storage, { report: (line) => void reports.push(line) });
  await history.open((await ENTRIES).slice(0, segments));
  return { history, reports };
}

/** A disk with the segments and the indexes of all runs. */
const MERGED: Promise<Tree> = SEALED.then(async (sealed) => {
  const storage = new SimulatedDisk(sealed.storage.tree());
  const { history, reports } = await openHistory(storage);
  await mergeAll(storage, history);
  await history.close();
  assert.deepEqual(reports, []);
  assert.equal(storage.openFiles, 0);
  return storage.tree();
});

function indexPaths(tree: Tree): string[] {
  return [...tree.keys()].filter((path) => path.startsWith(`${INDEX_FOLDER}/`)).sort();
}

async function streamsIn(sources: StreamSource[]): Promise<StreamEntry[]> {
  return (await Array.fromAsync(mergedStreams(sources, ""))).flat();
}

/** Everything that a history answers about its batches, streams and keys. */
async function answersOf(history: SealedHistory, step = 1): Promise<unknown[]> {
  const { entries } = await SEALED;
  const answers: unknown[] = [await streamsIn(history.streamSources())];
  for (let place = 0; place < entries.length; place += step) {
    const { source, batch_id } = entries[place]!;
    answers.push(await history.findBatch(source, batch_id), await history.sourceFrontier(source));
  }
  for (let n = 0; n < 10; n++) answers.push(await history.streamFrontier("a", `s-${n}`));
  answers.push(await history.findBatch("a", "new"), await history.sourceFrontier("none"));
  for (const filter of [{ recordKey: "key-7" }, { stream: "s-3" }, { source: "source-9" }]) {
    answers.push((await linesOf(history, filter)).toString());
  }
  return answers;
}

async function linesOf(history: SealedHistory, filter: Record<string, string>): Promise<Buffer> {
  const wanted = { after: undefined, filter, wantedBytes: () => 1, memory: new ScanMemory() };
  const chunks: Buffer[] = [];
  for await (const chunk of readLines(history.files, wanted)) {
    for (const line of chunk.toString().split("\n").filter((line) => line !== "")) {
      const { record_key, ...event } = JSON.parse(line);
      const matches = Object.entries(filter).every(([name, value]) =>
        (name === "recordKey" ? record_key : event[name]) === value
      );
      if (matches) chunks.push(Buffer.from(line + "\n"));
    }
  }
  return Buffer.concat(chunks);
}

/** The answers of the segments alone. */
const RIGHT = SEALED.then(async ({ storage }) => {
  const { history } = await openHistory(new SimulatedDisk(storage.tree()));
  return await answersOf(history);
});

test("merged indexes answer as the segments do, and few files remain", async () => {
  const tree = await MERGED;
  assert.deepEqual(indexPaths(tree).map((path) => path.slice(0, 8)), ["index/1_", "index/2_"]);
  const { entries } = await SEALED;
  assert.equal(
    (await RIGHT).filter((answer) => answer !== null).length,
    1 + 2 * entries.length + 13,
  );
  const storage = new SimulatedDisk(tree);
  const { history, reports } = await openHistory(storage);
  assert.equal(history.leftover, null);
  assert.equal(history.nextMerge(), null);
  assert.deepEqual(await answersOf(history), await RIGHT);
  assert.deepEqual(reports, []);
  await history.close();
});

test("a new batch reads nothing, and a known one only its segment", async () => {
  const storage = new SimulatedDisk(await MERGED);
  const { history } = await openHistory(storage);
  await history.findBatch("a", "new");
  const opened = async (act: () => unknown) => {
    const before = storage.operations.length;
    await act();
    return [...new Set(storage.operations.slice(before).map(({ path }) => path))];
  };
  for (let n = 0; n < 5; n++) {
    assert.ok((await opened(() => history.findBatch("a", `new-${n}`))).length <= 1);
  }
  const [big] = indexPaths(await MERGED).slice(-1);
  assert.deepEqual(await opened(() => history.findBatch("a", "a-3")), [big, "3.parquet"]);
  const files = await opened(() => linesOf(history, { recordKey: "only-40" }));
  assert.deepEqual(files.filter((path) => /^(?!7[23])\d+\./.test(path)), ["40.parquet"]);
  await history.close();
});

test("a filter with few bits for each key, or none, changes no answer", async () => {
  const run = indexPaths(await MERGED).at(-1)!;
  const bytes = Buffer.from((await MERGED).get(run)!);
  for (const filterBytes of [0, 32, 64, 96]) {
    const coarse = await rewriteIndex(bytes, { filterBytes }, coverageIn(run));
    const storage = new SimulatedDisk(new Map(await MERGED).set(run, coarse));
    const { history, reports } = await openHistory(storage);
    assert.deepEqual(await answersOf(history), await RIGHT);
    assert.deepEqual(reports, []);
    await history.close();
  }
});

test("a filter for which there is no room takes that of the largest one", async () => {
  const tree = new Map(await MERGED);
  const run = indexPaths(tree).at(-1)!;
  const storage = new SimulatedDisk(tree);
  const segment = await openSegment(storage, "73.parquet");
  const ofSegment = (await segment.index.open()).filterBytes;
  await segment.close();
  const index = indexIn(Buffer.from(tree.get(run)!), coverageIn(run));
  const ofRun = (await index.open()).filterBytes;
  assert.ok(ofRun > ofSegment, `${ofRun}, ${ofSegment}`);
  const history = new SealedHistory(storage, { filtersBytesMax: ofRun });
  await history.open((await ENTRIES).slice(0, 64));
  const pathsRead = async () => {
    const before = storage.operations.length;
    assert.equal(await history.findBatch("a", "n1"), null);
    return new Set(storage.operations.slice(before).map(({ path }) => path));
  };
  await pathsRead();
  assert.deepEqual(await pathsRead(), new Set());
  history.add((await ENTRIES).slice(64, 65));
  await pathsRead();
  assert.deepEqual(await pathsRead(), new Set([run]), "the segment's filter is in memory");
  await history.close();
});

test("the filters of merged segments leave memory", async () => {
  const storage = new SimulatedDisk((await SEALED).storage.tree());
  const { history } = await openHistory(storage);
  assert.equal(await history.findBatch("a", "absent"), null);
  const own = history.indexesOf({ first: 0, count: 64 } as Run).map(({ index }) => index);
  assert.ok(own.every(({ loadedBytes }) => loadedBytes > 0));
  await mergeAll(storage, history);
  assert.ok(own.every(({ loadedBytes }) => loadedBytes === 0));
  await history.close();
});

test("a listing that began before a merge goes on with the indexes that it removes", async () => {
  const storage = new SimulatedDisk((await SEALED).storage.tree());
  const { history } = await openHistory(storage);
  const right = await streamsIn(history.streamSources());
  const listing = mergedStreams(history.streamSources(), "a s-2");
  const make = (plan: MergePlan) => makeIndex(storage, plan);
  for (let merges = 0; merges < 8; merges++) await mergeNext(storage, history, make);
  const between = mergedStreams(history.streamSources(), "a s-2");
  await mergeAll(storage, history);
  for (const begun of [listing, between]) {
    const rest = (await Array.fromAsync(begun)).flat();
    assert.deepEqual(rest, right.filter(({ key }) => key >= "a s-2"));
  }
  await history.close();
});

test("streamsThrough() splits a run at the segment with the event", async () => {
  const { history } = await openHistory(new SimulatedDisk(await MERGED));
  const { entries } = await SEALED;
  for (const number of [0, 5, 63, 64, 70, 73]) {
    const through = entries[2 * number + 1]!.last_event_id;
    const { before, file } = history.streamsThrough(through)!;
    const { history: shorter } = await openHistory(new SimulatedDisk(await MERGED), number);
    assert.equal(file.path, `${number}.parquet`);
    assert.deepEqual(await streamsIn(before), await streamsIn(shorter.streamSources()));
    await shorter.close();
  }
  assert.equal(history.streamsThrough("ffffffff-ffff-7fff-bfff-ffffffffffff"), null);
  await history.close();
});

test(`a lost or damaged index changes no answer, and is made again (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const tree = await MERGED;
  const foreign = await sealMany("other");
  const otherDisk = new SimulatedDisk(foreign.storage.tree());
  const other = new SealedHistory(otherDisk);
  await other.open(foreign.segments.map(entryOf));
  await mergeAll(otherDisk, other);
  const paths = indexPaths(tree);
  const others = indexPaths(otherDisk.tree());
  for (let run = 0; run < 15; run++) {
    const path = random.pick(paths);
    const bytes = Buffer.from(tree.get(path)!);
    const damaged = new Map(tree);
    const kind = run % 5;
    if (kind === 0) damaged.delete(path);
    if (kind === 1) damaged.set(path, truncateAt(bytes, random.below(bytes.length)));
    if (kind === 2) damaged.set(path, flipBit(bytes, random.below(8 * bytes.length)));
    if (kind === 3) {
      damaged.set(path, otherDisk.contents(others[paths.indexOf(path)]!));
    }
    if (kind === 4) {
      damaged.delete(path);
      for (const [name, bytes] of otherDisk.tree()) {
        if (name.startsWith(INDEX_FOLDER)) damaged.set(name, bytes);
      }
      damaged.set(INDEX_TEMPORARY_FILE, Buffer.alloc(10));
      damaged.set(`${INDEX_FOLDER}/notes.txt`, Buffer.alloc(1));
    }
    const storage = new SimulatedDisk(damaged);
    const { history, reports } = await openHistory(storage);
    assert.deepEqual(await answersOf(history), await RIGHT, `kind ${kind}`);
    assert.ok(reports.length <= 1 && reports.every((line) => line.includes(path)), `${reports}`);
    if (kind === 1 || kind === 3) assert.equal(reports.length, 1);
    await mergeAll(storage, history);
    assert.deepEqual(await streamsIn(history.streamSources()), (await RIGHT)[0]);
    await history.close();
    const left = indexPaths(storage.tree()).filter((name) => !name.endsWith(".txt"));
    assert.deepEqual(left, paths);
    if (reports.length > 0 || kind === 4) {
      assert.ok(storage.contents(path).equals(bytes), "it is made again, byte for byte");
    }
    assert.equal(storage.tree().has(`${INDEX_FOLDER}/notes.txt`), kind === 4);
  }
});

test("after a crash at any step of a merge, lookups are right and merging resumes", async () => {
  const sealed = (await SEALED).storage.tree();
  let steps = 0;
  for (let crashAt = 0; crashAt <= steps; crashAt++) {
    const choice = [ALL_DONE, NAMES_ONLY, SYNCED_ONLY][crashAt % 3]!;
    const storage = new SimulatedDisk(sealed);
    const { history } = await openHistory(storage);
    let done = 0;
    storage.hook = (operation) => {
      if (!changesDisk(operation)) return null;
      return done++ >= crashAt ? { errno: "EIO" } : null;
    };
    await mergeAll(storage, history).catch(() => {});
    steps = Math.max(steps, done);
    storage.hook = null;
    await history.close();
    const crashed = storage.crash(choice);
    const { history: reopened, reports } = await openHistory(crashed);
    const sample = (history: SealedHistory) => history.findBatch("a", `a-${crashAt % SEGMENTS}`);
    assert.notEqual(await sample(reopened), null);
    await mergeAll(crashed, reopened);
    assert.notEqual(await sample(reopened), null);
    assert.deepEqual(reports, []);
    await reopened.close();
    assert.deepEqual(indexPaths(crashed.tree()), indexPaths(await MERGED));
  }
  assert.ok(steps > 60, `${steps} steps`);
});

test("a merge whose input is damaged is given up with one report, and others go on", async () => {
  const tree = new Map((await SEALED).storage.tree());
  const bytes = Buffer.from(tree.get("3.parquet")!);
  const intact = new SimulatedDisk(tree);
  const segment = await openSegment(intact, "3.parquet");
  const { index } = await segment.footer();
  await segment.close();
  tree.set("3.parquet", flipBit(bytes, 8 * (index.end - 100)));
  const storage = new SimulatedDisk(tree);
  const { history, reports } = await openHistory(storage);
  await mergeAll(storage, history);
  assert.match(
    reports.join("\n"),
    /^index\/1_.*: not merged until the next start: 3\.parquet: .*$/,
  );
  const left = indexPaths(storage.tree());
  assert.deepEqual(left.map((path) => path.slice(0, 8)), Array(8).fill("index/1_"));
  await history.close();
  assert.equal(storage.openFiles, 0);
});

test("a merge whose input is a damaged run makes that run again", async () => {
  const storage = new SimulatedDisk((await SEALED).storage.tree());
  const { history, reports } = await openHistory(storage);
  const make = (plan: MergePlan) => makeIndex(storage, plan);
  await mergeNext(storage, history, make);
  const [path] = indexPaths(storage.tree());
  await history.close();
  const tree = new Map(storage.tree());
  tree.set(path!, flipBit(Buffer.from(tree.get(path!)!), 8 * 10));
  const damaged = new SimulatedDisk(tree);
  const { history: reopened } = await openHistory(damaged);
  await mergeAll(damaged, reopened);
  await reopened.close();
  assert.deepEqual(indexPaths(damaged.tree()), indexPaths(await MERGED));
  assert.deepEqual(reports, []);
});
