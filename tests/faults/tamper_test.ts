/**
 * `verify --chain` detects any change to a log's files that affects readers. Some changes are
 * random; in others, framing, names and inventory are repaired to match.
 *
 * SEED reproduces a run, and TAMPER_FLIPS sets the number of bit flips of each kind.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import process from "node:process";
import { test, type TestContext } from "node:test";
import { MANIFEST_FILE, SEGMENTS_FOLDER, TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { UnsupportedFormatError } from "../../src/log/storage/errors.ts";
import type { Damage } from "../../src/log/verify/verify.ts";
import type { EventFilter } from "../../src/log/line/stored_line.ts";
import { EventScan } from "../../src/log/read/event_scan.ts";
import { mergedStreams } from "../../src/log/read/stream_counts.ts";
import type { LogSnapshot } from "../../src/log/read/snapshot.ts";
import { flipBit } from "../support/corrupt.ts";
import {
  type CommitParts,
  joinCommits,
  manifestOf,
  pendingPaths,
  splitCommits,
  withCommits,
  withFile,
  withRows,
  withSegment,
} from "../support/forged_log.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import { commitOffsets, joinPieces, openTestLog, WHOLE } from "../support/test_log.ts";
import { fullLog, verifyTree } from "../support/verifying.ts";

const SEED = testSeed();
const FLIPS = Number(process.env.TAMPER_FLIPS ?? 150);

const FULL = await fullLog();
const PATHS = [...FULL].filter(([, bytes]) => bytes !== null && bytes.length > 0).map(([p]) => p);
const SEGMENTS = manifestOf(FULL).segments;
const PENDING = pendingPaths(FULL);
const REPLAY = await replayOf(FULL);

/** The outcome of a change: the failure code that reports it, or harmless. */
type Outcome = Damage["code"] | "refused" | "harmless";

/** Verifies a changed log. If it passes, compares its replay with the original. */
async function outcomeOf(tree: Tree, what: string): Promise<Outcome> {
  let verification;
  try {
    verification = await verifyTree(tree);
  } catch (error) {
    if (error instanceof UnsupportedFormatError) return "refused";
    throw new Error(`${what}: verify crashed`, { cause: error });
  }
  if (verification.failure !== null) return verification.failure.code;
  try {
    assert.deepEqual(await replayOf(tree), REPLAY);
  } catch (error) {
    if (error instanceof UnsupportedFormatError) return "refused";
    throw new Error(`${what}: neither detected nor harmless`, { cause: error });
  }
  return "harmless";
}

/** The bytes of every replay: unfiltered, and filtered by each value of each filter. */
async function replayOf(tree: Tree): Promise<string[]> {
  const { log } = await openTestLog(new SimulatedDisk(tree));
  const all = await replay(log.snapshot, {});
  const filters = new Map<string, EventFilter>();
  for (const { source, stream, record_key: recordKey, kind } of JSON.parse(`[${all}]`)) {
    for (const filter of [{ source }, { stream }, { recordKey }, { kind }, { recordKey, stream }]) {
      filters.set(JSON.stringify(filter), filter);
    }
  }
  const pages = [all];
  for (const filter of filters.values()) pages.push(await replay(log.snapshot, filter));
  const streams = await Array.fromAsync(mergedStreams(log.files.sealed.streamSources(), ""));
  await log.close();
  return [...pages, JSON.stringify(streams)];
}

function replay(snapshot: LogSnapshot, filter: EventFilter): Promise<string> {
  return joinPieces(new EventScan(snapshot, { ...WHOLE, filter }));
}

/** Evaluates FLIPS changes and reports how often each outcome occurred. */
async function judgeAll(
  context: TestContext,
  seed: number,
  change: (random: Random) => { tree: Tree; what: string; check?: (outcome: Outcome) => void },
): Promise<void> {
  const random = seededRandom(seed);
  const counts: Record<string, number> = {};
  for (let number = 0; number < FLIPS; number++) {
    const { tree, what, check } = change(random);
    const outcome = await outcomeOf(tree, what);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    check?.(outcome);
  }
  context.diagnostic(JSON.stringify(counts));
}

function kindOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.indexOf("/")) : path;
}

const CODES_OF_FLIPS: Record<string, readonly Outcome[]> = {
  // Sizes and counts are compared with the files; readers ignore times and `min_writer`.
  [MANIFEST_FILE]: ["manifest_invalid", "file_hash_mismatch", "segment_invalid", "refused"],
  [SEGMENTS_FOLDER]: ["file_hash_mismatch"],
  pending: ["pending_invalid"],
  [TAIL_FILE]: ["tail_invalid"],
};

test(`${FLIPS} single-bit flips are detected or harmless (seed ${SEED})`, (context) =>
  judgeAll(context, SEED, (random) => {
    const path = randomItem(random, PATHS);
    const bytes = Buffer.from(FULL.get(path)!);
    const bit = randomInteger(random, 0, 8 * bytes.length - 1);
    const what = `${path}, bit ${bit}`;
    const check = (outcome: Outcome) => {
      if (outcome === "harmless") assert.ok(mayBeHarmless(path, bit >> 3), `${what}: harmless`);
      else assert.ok(CODES_OF_FLIPS[kindOf(path)]!.includes(outcome), `${what}: ${outcome}`);
    };
    return { tree: withFile(FULL, path, flipBit(bytes, bit)), what, check };
  }));

/** Whether the byte is part of a timestamp in the manifest or of the clean-shutdown marker. */
function mayBeHarmless(path: string, offset: number): boolean {
  const bytes = Buffer.from(FULL.get(path)!);
  // The clean-shutdown marker is the last commit.
  if (path === TAIL_FILE) return offset >= commitOffsets(bytes).at(-2)!;
  if (path !== MANIFEST_FILE) return false;
  const member = bytes.subarray(0, offset).lastIndexOf('":');
  return /"(sealed_at|min_writer)$/.test(bytes.toString("latin1", 0, member));
}

/** A file with one bit flipped in the header or lines of a commit, and the sha256 repaired. */
function reframed(path: string, random: Random): Buffer {
  const commits = splitCommits(FULL.get(path)!);
  const place = randomInteger(random, 0, commits.length - 1);
  const before = joinCommits(commits.slice(0, place));
  const after = joinCommits(commits.slice(place + 1));
  const one = joinCommits(commits.slice(place, place + 1));
  const lineEnd = one.indexOf("\n");
  const text = one.subarray('{"commit":'.length, one.lastIndexOf(',"sha256":"', lineEnd));
  const body = one.subarray(lineEnd + 1);
  const content = Buffer.concat([text, Buffer.from("\n"), body]);
  const changed = flipBit(content, randomInteger(random, 0, 8 * content.length - 1));
  const sha256 = createHash("sha256").update(changed).digest("hex");
  const header = changed.subarray(0, text.length);
  const framed = ['{"commit":', header, `,"sha256":"${sha256}"}`, changed.subarray(text.length)];
  return Buffer.concat([before, ...framed.map((piece) => Buffer.from(piece as string)), after]);
}

test(`${FLIPS} flips with repaired framing are detected or harmless (seed ${SEED})`, (context) =>
  judgeAll(context, SEED + 1, (random) => {
    const path = randomItem(random, [...PENDING, TAIL_FILE]);
    const check = (outcome: Outcome) => {
      assert.notEqual(outcome, "refused");
      // A damaged clean-shutdown marker is reported as a remnant.
      if (outcome === "harmless") assert.equal(path, TAIL_FILE);
    };
    return { tree: withFile(FULL, path, reframed(path, random)), what: `a flip in ${path}`, check };
  }));

test(`${FLIPS} flips with an updated manifest are detected or harmless (seed ${SEED})`, (context) =>
  judgeAll(context, SEED + 2, (random) => {
    const number = randomInteger(random, 0, SEGMENTS.length - 1);
    const bytes = Buffer.from(FULL.get(SEGMENTS[number]!.path)!);
    const bit = randomInteger(random, 0, 8 * bytes.length - 1);
    const tree = withSegment(FULL, number, flipBit(bytes, bit));
    return { tree, what: `segment ${number}, bit ${bit}` };
  }));

/** All ways to remove, duplicate or swap items. */
function rearrangements<Item>(items: readonly Item[]): { what: string; items: Item[] }[] {
  const found: { what: string; items: Item[] }[] = [];
  items.forEach((item, at) => {
    found.push({ what: `without ${at}`, items: items.toSpliced(at, 1) });
    found.push({ what: `${at} duplicated`, items: items.toSpliced(at, 0, item) });
    for (let other = at + 1; other < items.length; other++) {
      const swapped = items.with(at, items[other]!).with(other, item);
      found.push({ what: `${at} and ${other} swapped`, items: swapped });
    }
  });
  return found;
}

/** Asserts the outcome of each rearrangement of items. @param treeOf puts them into the log. */
async function assertDetected<Item>(
  name: string,
  items: readonly Item[],
  treeOf: (items: Item[]) => Tree | Promise<Tree>,
  expected: (items: Item[]) => readonly Outcome[],
): Promise<void> {
  for (const { what, items: changed } of rearrangements(items)) {
    const outcome = await outcomeOf(await treeOf(changed), `${name}: ${what}`);
    assert.ok(expected(changed).includes(outcome), `${name}: ${what}: ${outcome}`);
  }
}

test("deleted, duplicated or reordered commits are detected", async () => {
  const linesOf = (commits: readonly CommitParts[]) => commits.flatMap(({ lines }) => lines).join();
  for (const path of [...PENDING, TAIL_FILE]) {
    const commits = splitCommits(FULL.get(path)!);
    const treeOf = (items: CommitParts[]) => withFile(FULL, path, joinCommits(items));
    // The clean-shutdown marker may be repeated or missing, but not moved.
    await assertDetected(
      path,
      commits,
      treeOf,
      (items) =>
        linesOf(items) === linesOf(commits)
          ? ["chain_head_mismatch", "harmless"]
          : ["chain_head_mismatch", "order_invalid", "pending_invalid"],
    );
  }
});

const CODES = ["order_invalid", "batch_commitment_mismatch", "chain_head_mismatch"] as const;

test("deleted, duplicated or reordered rows with repaired framing are detected", async () => {
  for (const path of [...PENDING, TAIL_FILE]) {
    const codes = [...CODES, path === TAIL_FILE ? "tail_invalid" : "pending_invalid"] as const;
    const [{ lines }] = splitCommits(FULL.get(path)!) as [CommitParts];
    for (const isCounted of [false, true]) {
      const treeOf = (items: string[]) =>
        withCommits(FULL, path, ([first]) => {
          first!.lines = items;
          if (isCounted) first!.commit.batches[0]!.events += items.length - lines.length;
        });
      const name = `${path}, ${isCounted ? "counted" : "not counted"}`;
      await assertDetected(name, lines, treeOf, () => codes);
    }
  }
});

test("deleted, duplicated or reordered segment rows with a rebuilt manifest are detected", async () => {
  for (const [number, { events }] of SEGMENTS.entries()) {
    const places = [...Array(events).keys()];
    const treeOf = (items: number[]) =>
      withRows(FULL, number, (rows) => items.map((place) => rows[place]!));
    const codes = [...CODES, "segment_invalid", "manifest_invalid"] as const;
    await assertDetected(`segment ${number}`, places, treeOf, () => codes);
  }
});
