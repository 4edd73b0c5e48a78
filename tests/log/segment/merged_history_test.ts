/**
 * Lookups through the indexes of runs: they answer as the segments do, while indexes are being
 * merged, after a crash at any step, and with an index that is missing, damaged or of another log.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  mergedStreams,
  type StreamEntry,
  type StreamSource,
} from "../../../src/log/read/stream_counts.ts";
import { readLines } from "../../../src/log/read/snapshot.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import { type MergePlan, SealedHistory } from "../../../src/log/segment/sealed_history.ts";
import { makeIndex, mergeNext } from "../../../src/log/sealing/index_merging.ts";
import { INDEX_FOLDER, INDEX_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { coverageIn, indexIn, rewriteIndex } from "../../support/forged_index.ts";
import { mergeAll } from "../../support/merging.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { ALL_DONE, NAMES_ONLY, SYNCED_ONLY } from "../../support/simulated_crash.ts";
import { changesDisk, SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { entryOf, openSegment, sealCommits } from "../../support/test_segment.ts";

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

const { entries: BATCHES, ...SEALED } = await sealMany("a");
const ENTRIES = SEALED.segments.map(entryOf);
/** The segments, without the index of any run. */
const UNMERGED: Tree = SEALED.storage.tree();

async function openHistory(tree: Tree, segments = SEGMENTS) {
  const storage = new SimulatedDisk(tree);
  const reports: string[] = [];
  const history = new SealedHistory(storage, { report: (line) => void reports.push(line) });
  await history.open(ENTRIES.slice(0, segments));
  return { storage, history, reports };
}

/** The segments and the indexes of all runs. */
const MERGED: Tree = await mergedTree();

async function mergedTree(): Promise<Tree> {
  const { storage, history, reports } = await openHistory(UNMERGED);
  await mergeAll(storage, history);
  await history.close();
  assert.deepEqual(reports, []);
  assert.equal(storage.openFiles, 0);
  return storage.tree();
}

function indexPaths(tree: Tree): string[] {
  return [...tree.keys()].filter((path) => path.startsWith(`${INDEX_FOLDER}/`)).sort();
}

async function streamsIn(sources: StreamSource[]): Promise<StreamEntry[]> {
  return (await Array.fromAsync(mergedStreams(sources, ""))).flat();
}

/** Everything that a history answers about its batches, streams and keys. */
async function answersOf(history: SealedHistory): Promise<unknown[]> {
  const answers: unknown[] = [await streamsIn(history.streamSources())];
  for (const { source, batch_id } of BATCHES) {
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
const RIGHT = await answersOf((await openHistory(UNMERGED)).history);

test("merged indexes answer as the segments do, and few files remain", async () => {
  assert.deepEqual(indexPaths(MERGED).map((path) => path.slice(0, 8)), ["index/1_", "index/2_"]);
  const found = RIGHT.filter((answer) => answer !== null);
  assert.equal(found.length, 1 + 2 * BATCHES.length + 13);
  const { history, reports } = await openHistory(MERGED);
  assert.equal(history.leftover, null);
  assert.equal(history.nextMerge(), null);
  assert.deepEqual(await answersOf(history), RIGHT);
  assert.deepEqual(reports, []);
  await history.close();
});

test("a new batch reads nothing, and a known one only its segment", async () => {
  const { storage, history } = await openHistory(MERGED);
  await history.findBatch("a", "new");
  const opened = async (act: () => unknown) => {
    const before = storage.operations.length;
    await act();
    return [...new Set(storage.operations.slice(before).map(({ path }) => path))];
  };
  for (let n = 0; n < 5; n++) {
    assert.ok((await opened(() => history.findBatch("a", `new-${n}`))).length <= 1);
  }
  const [big] = indexPaths(MERGED).slice(-1);
  assert.deepEqual(await opened(() => history.findBatch("a", "a-3")), [big, "3.parquet"]);
  const files = await opened(() => linesOf(history, { recordKey: "only-40" }));
  assert.deepEqual(files.filter((path) => /^(?!7[23])\d+\./.test(path)), ["40.parquet"]);
  await history.close();
});

test("a filter with few bits for each key, or none, changes no answer", async () => {
  const run = indexPaths(MERGED).at(-1)!;
  const bytes = Buffer.from(MERGED.get(run)!);
  for (const filterBytes of [0, 32, 64, 96]) {
    const coarse = await rewriteIndex(bytes, { filterBytes }, coverageIn(run));
    const { history, reports } = await openHistory(new Map(MERGED).set(run, coarse));
    assert.deepEqual(await answersOf(history), RIGHT);
    assert.deepEqual(reports, []);
    await history.close();
  }
});

test("a filter for which there is no room takes that of the largest one", async () => {
  const run = indexPaths(MERGED).at(-1)!;
  const storage = new SimulatedDisk(MERGED);
  const segment = openSegment(storage, "73.parquet");
  const ofSegment = (await segment.index.open()).filterBytes;
  await segment.close();
  const index = indexIn(Buffer.from(MERGED.get(run)!), coverageIn(run));
  const ofRun = (await index.open()).filterBytes;
  assert.ok(ofRun > ofSegment, `${ofRun}, ${ofSegment}`);
  const history = new SealedHistory(storage, { filtersBytesMax: ofRun });
  await history.open(ENTRIES.slice(0, 64));
  const pathsRead = async () => {
    const before = storage.operations.length;
    assert.equal(await history.findBatch("a", "n1"), null);
    return new Set(storage.operations.slice(before).map(({ path }) => path));
  };
  await pathsRead();
  assert.deepEqual(await pathsRead(), new Set());
  history.add(ENTRIES.slice(64, 65));
  await pathsRead();
  assert.deepEqual(await pathsRead(), new Set([run]), "the segment's filter is in memory");
  await history.close();
});

test("a listing that began before a merge goes on with the indexes that it removes", async () => {
  const { storage, history } = await openHistory(UNMERGED);
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
  const { history } = await openHistory(MERGED);
  for (const number of [0, 5, 63, 64, 70, 73]) {
    const through = BATCHES[2 * number + 1]!.last_event_id;
    const { before, file } = history.streamsThrough(through)!;
    const { history: shorter } = await openHistory(MERGED, number);
    assert.equal(file.path, `${number}.parquet`);
    assert.deepEqual(await streamsIn(before), await streamsIn(shorter.streamSources()));
    await shorter.close();
  }
  assert.equal(history.streamsThrough("ffffffff-ffff-7fff-bfff-ffffffffffff"), null);
  await history.close();
});

test(`a lost or damaged index changes no answer, and is made again (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const foreign = await sealMany("other");
  const otherDisk = new SimulatedDisk(foreign.storage.tree());
  const other = new SealedHistory(otherDisk);
  await other.open(foreign.segments.map(entryOf));
  await mergeAll(otherDisk, other);
  const paths = indexPaths(MERGED);
  const others = indexPaths(otherDisk.tree());
  for (let run = 0; run < 15; run++) {
    const path = random.pick(paths);
    const bytes = Buffer.from(MERGED.get(path)!);
    const damaged = new Map(MERGED);
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
    const { storage, history, reports } = await openHistory(damaged);
    assert.deepEqual(await answersOf(history), RIGHT, `kind ${kind}`);
    assert.ok(reports.length <= 1 && reports.every((line) => line.includes(path)), `${reports}`);
    if (kind === 1 || kind === 3) assert.equal(reports.length, 1);
    await mergeAll(storage, history);
    assert.deepEqual(await streamsIn(history.streamSources()), RIGHT[0]);
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
  let steps = 0;
  for (let crashAt = 0; crashAt <= steps; crashAt++) {
    const choice = [ALL_DONE, NAMES_ONLY, SYNCED_ONLY][crashAt % 3]!;
    const { storage, history } = await openHistory(UNMERGED);
    let done = 0;
    storage.hook = (operation) => {
      if (!changesDisk(operation)) return null;
      return done++ >= crashAt ? { errno: "EIO" } : null;
    };
    await mergeAll(storage, history).catch(() => {});
    steps = Math.max(steps, done);
    storage.hook = null;
    await history.close();
    const crash = storage.crash(choice).tree();
    const { storage: crashed, history: reopened, reports } = await openHistory(crash);
    const sample = (history: SealedHistory) => history.findBatch("a", `a-${crashAt % SEGMENTS}`);
    assert.notEqual(await sample(reopened), null);
    await mergeAll(crashed, reopened);
    assert.notEqual(await sample(reopened), null);
    assert.deepEqual(reports, []);
    await reopened.close();
    assert.deepEqual(indexPaths(crashed.tree()), indexPaths(MERGED));
  }
  assert.ok(steps > 60, `${steps} steps`);
});

test("a merge whose input is damaged is given up with one report, and others go on", async () => {
  const segment = openSegment(new SimulatedDisk(UNMERGED), "3.parquet");
  const { index } = await segment.footer();
  await segment.close();
  const damaged = flipBit(UNMERGED.get("3.parquet")!, 8 * (index.end - 100));
  const tree = new Map(UNMERGED).set("3.parquet", damaged);
  const { storage, history, reports } = await openHistory(tree);
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

for (const isFoundByLookup of [false, true]) {
  const meanwhile = isFoundByLookup ? ", also if a lookup finds the damage meanwhile" : "";
  test(`a merge whose input is a damaged run makes that run again${meanwhile}`, async () => {
    const { storage, history } = await openHistory(UNMERGED);
    await mergeNext(storage, history, (plan) => makeIndex(storage, plan));
    const [path] = indexPaths(storage.tree());
    await history.close();
    const tree = storage.tree();
    tree.set(path!, flipBit(tree.get(path!)!, 8 * 10));
    const { storage: damaged, history: reopened, reports } = await openHistory(tree);
    const make = async (plan: MergePlan) => {
      const isInput = plan.inputs.some((input) => input.path === path);
      if (isInput && isFoundByLookup) assert.deepEqual(await answersOf(reopened), RIGHT);
      await makeIndex(damaged, plan);
    };
    await mergeAll(damaged, reopened, make);
    await reopened.close();
    assert.deepEqual(indexPaths(damaged.tree()), indexPaths(MERGED));
    assert.deepEqual(reports.map((line) => line.split(":")[0]), [path]);
  });
}
