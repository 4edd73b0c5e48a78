import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  MANIFEST_TEMPORARY_FILE,
  SEGMENT_TEMPORARY_FILES,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../../src/log/storage/file_names.ts";
import { UnsupportedFormatError } from "../../../src/log/storage/errors.ts";
import { verifyLog, type VerifyReport } from "../../../src/log/verify/verify.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { appendBytes, truncateAt } from "../../support/corrupt.ts";
import { manifestOf, pendingPaths, withManifest, without } from "../../support/forged_log.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealAll } from "../../support/sealing.ts";
import { gateAt } from "../../support/storage_faults.ts";
import { appendTo, commitOffsets, openTestLog, tailOf, withTail } from "../../support/test_log.ts";
import { hostileBatch } from "../../support/test_segment.ts";
import { fullLog, logOf, verifyStorage, verifyTree } from "../../support/verifying.ts";

const HEALTHY: VerifyReport = {
  ok: true,
  chain_checked: true,
  segments_checked: 0,
  pending_checked: 0,
  events_checked: 0,
  orphans: [],
  remnants: [],
  failure: null,
};

const FULL_COUNTS = { segments_checked: 3, pending_checked: 2, events_checked: 46 };
const TWO_COMMITS = await logOf({ tailCommits: 2 });
const [, SECOND, END] = commitOffsets(tailOf(TWO_COMMITS)) as [number, number, number];
const FIRST_START: Tree = new Map([["pending", null], ["segments", null]]);
const PENDING_LOG = await logOf({ pendingFiles: 1 });
const [PENDING] = pendingPaths(PENDING_LOG) as [string];
const SEALED_LOG = await sealedTree(PENDING_LOG);
const SEGMENT = manifestOf(SEALED_LOG).segments[0]!.path;

async function sealedTree(tree: Tree): Promise<Tree> {
  const storage = new SimulatedDisk(tree);
  await sealAll(storage);
  return storage.tree();
}

/** A log whose batches have values as unusual as the rules for events allow. */
async function hostileTail(): Promise<Tree> {
  const storage = new SimulatedDisk();
  const random = new SeededRandom();
  await appendTo(storage, ...Array.from({ length: 50 }, (_, n) => hostileBatch(random, n, 4)));
  return storage.tree();
}

/** A tree with files added. */
function withFiles(tree: Tree, files: Record<string, Uint8Array | string>): Tree {
  const added = Object.entries(files).map(([path, bytes]) => [path, Buffer.from(bytes)] as const);
  return new Map([...tree, ...added]);
}

const HOSTILE_TAIL = await hostileTail();

const LOGS: [what: string, Tree, Partial<VerifyReport>][] = [
  ["an empty directory, as created by init", new Map(), {}],
  ["a log without events", await logOf({}), {}],
  ["a tail", TWO_COMMITS, { events_checked: 10 }],
  [`a tail of hostile events (seed ${SEED})`, HOSTILE_TAIL, { events_checked: 200 }],
  [
    `a segment of hostile events (seed ${SEED})`,
    await sealedTree(HOSTILE_TAIL),
    { segments_checked: 1, events_checked: 200 },
  ],
  ["a log with every kind of file", await fullLog(), FULL_COUNTS],
  ["an interrupted first startup", FIRST_START, { remnants: ["pending", "segments"] }],
  [
    "a first startup interrupted at the manifest",
    withFiles(FIRST_START, { [TAIL_FILE]: "", [MANIFEST_TEMPORARY_FILE]: "{" }),
    { remnants: ["pending", "segments", TAIL_FILE], orphans: [MANIFEST_TEMPORARY_FILE] },
  ],
  ...[SECOND + 1, SECOND + 100, END - 1].map((bytes): typeof LOGS[number] => [
    `a commit torn at byte ${bytes}`,
    withTail(TWO_COMMITS, truncateAt(tailOf(TWO_COMMITS), bytes)),
    { events_checked: 5, remnants: [TAIL_FILE] },
  ]),
  [
    "a tail with zeros at the end",
    withTail(TWO_COMMITS, appendBytes(tailOf(TWO_COMMITS), "\0".repeat(100))),
    { events_checked: 10, remnants: [TAIL_FILE] },
  ],
  [
    "a rotation that has not created its tail",
    withFiles(without(PENDING_LOG, TAIL_FILE), { [TAIL_TEMPORARY_FILE]: "" }),
    {
      pending_checked: 1,
      events_checked: 10,
      orphans: [TAIL_TEMPORARY_FILE],
      remnants: [TAIL_FILE],
    },
  ],
  [
    "sealing interrupted after its manifest",
    withFiles(SEALED_LOG, {
      [PENDING]: PENDING_LOG.get(PENDING)!,
      [SEGMENT_TEMPORARY_FILES[0]]: "PAR1",
      [SEGMENT_TEMPORARY_FILES[1]]: "PAR1",
      [MANIFEST_TEMPORARY_FILE]: "{",
    }),
    {
      segments_checked: 1,
      events_checked: 10,
      orphans: [MANIFEST_TEMPORARY_FILE, PENDING, ...SEGMENT_TEMPORARY_FILES],
    },
  ],
  [
    "sealing interrupted before its manifest",
    withFiles(PENDING_LOG, { [SEGMENT]: SEALED_LOG.get(SEGMENT)! }),
    { pending_checked: 1, events_checked: 10, orphans: [SEGMENT] },
  ],
  [
    "a log with foreign files",
    withFiles(await fullLog(), { "notes.txt": "?", "pending/notes.txt": "?", "segments/x": "?" }),
    FULL_COUNTS,
  ],
];

for (const [what, tree, expected] of LOGS) {
  test(`verifyLog() accepts ${what}`, async () => {
    for (const chain of [false, true]) {
      const { report, failure } = await verifyTree(tree, { chain });
      assert.equal(failure, null);
      assert.deepEqual(report, { ...HEALTHY, ...expected, chain_checked: chain });
    }
  });
}

test("verifyLog() refuses a log that requires a newer version", async () => {
  const tree = await fullLog();
  const newer = withManifest(tree, { ...manifestOf(tree), min_reader: 2, min_writer: 2 });
  await assert.rejects(verifyTree(newer), UnsupportedFormatError);
  const readable = withManifest(tree, { ...manifestOf(tree), min_writer: 2 });
  assert.ok((await verifyTree(readable)).report.ok);
});

/** Regression: a file whose size could not be read stayed open. */
test("verifyLog() rethrows a disk error, and closes every file", async () => {
  const tree = await fullLog();
  for (const failing of ["size", "read"]) {
    for (const failingPath of [...pendingPaths(tree), TAIL_FILE]) {
      const storage = new SimulatedDisk(tree);
      storage.hook = ({ kind, path }) =>
        kind === failing && path === failingPath ? { errno: "EIO" } : null;
      await assert.rejects(verifyLog(storage, { chain: true }), /EIO/);
      assert.equal(storage.openFiles, 0, `${failing} ${failingPath}`);
    }
  }
});

test("verifyLog() accepts a log while its writer appends", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  for (let number = 0; number < 5; number++) await log.append([preparedBatch(`${number}`)]);
  const held = gateAt("write");
  storage.hook = held.hook;
  const appending = log.append([preparedBatch("held")]);
  await held.reached;
  const { report } = await verifyStorage(storage);
  assert.deepEqual([report.ok, report.events_checked, report.remnants], [true, 5, []]);
  held.open();
  await appending;
  assert.equal((await verifyStorage(storage)).report.events_checked, 6);
  await log.close();
});

for (const step of ["list", "open", "size", "read"] as const) {
  test(`verifyLog() restarts when a seal moves files before any ${step}`, async () => {
    const made = await logOf({ segments: true, tailCommits: 2 });
    for (let nth = 1; nth <= 60; nth++) {
      const storage = new SimulatedDisk(made);
      let count = 0;
      let sealing: Promise<unknown> | null = null;
      storage.hook = async ({ kind }) => {
        if (sealing !== null || kind !== step || ++count < nth) return null;
        sealing = Promise.resolve();
        const { log } = await openTestLog(storage);
        await log.seal(() => {});
        await log.close();
        return null;
      };
      const { report, failure } = await verifyLog(storage, { chain: true });
      assert.equal(failure, null, failure?.message);
      assert.equal(report.events_checked, 21);
      if (sealing === null) return;
    }
  });
}

test("verifyLog() gives up on a log whose files keep changing", async () => {
  const storage = new SimulatedDisk(await logOf({}));
  let number = 0;
  storage.hook = async ({ kind, path }) => {
    if (kind !== "open" || path !== TAIL_FILE) return null;
    await (await storage.open(`pending/${number++}.ndjson`, "create")).close();
    return null;
  };
  await assert.rejects(
    verifyLog(storage, { chain: true }),
    /changed while it was being listed; run verify again$/,
  );
});
