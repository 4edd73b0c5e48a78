/** Background sealing: its triggers, its reports, and the effects of failures. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import {
  MANIFEST_FILE,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILES,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../../src/log/storage/file_names.ts";
import { NAME_BYTES_MAX } from "../../../src/limits.ts";
import { StorageFullError } from "../../../src/log/storage/errors.ts";
import type { Log } from "../../../src/log/log.ts";
import { PENDING_FILES_MAX } from "../../../src/log/sealing/sealer.ts";
import { pendingPaths } from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly } from "../../support/sealing.ts";
import { SealingSteps, type SealingStepsOptions } from "../../support/sealing_steps.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { logTree, openTestLog, readAll } from "../../support/test_log.ts";

async function opened(
  storage: SimulatedDisk = new SimulatedDisk(),
  options: SealingStepsOptions = {},
) {
  const steps = new SealingSteps(options);
  return { storage, steps, ...await openTestLog(storage, steps.on()) };
}

async function append(log: Log, ...batchIds: string[]): Promise<void> {
  for (const batchId of batchIds) await log.append([preparedBatch(batchId)]);
}

function batchIdsOf(events: readonly CommittedEvent[]): string[] {
  return events.map(({ batch_id }) => batch_id);
}

/** The number of files in each directory of a log. */
function filesOf(storage: SimulatedDisk): Record<string, number> {
  const names = [...storage.tree().keys()];
  const inFolder = (folder: string) => names.filter((name) => name.startsWith(`${folder}/`)).length;
  return { pending: inFolder(PENDING_FOLDER), segments: inFolder(SEGMENTS_FOLDER) };
}

test("append() rotates tails while others wait to be sealed, which isBehind tells", async () => {
  const { log, storage, steps, reports } = await opened();
  const made = Promise.withResolvers<void>();
  steps.beforeMake = () => made.promise;
  const batchIds = Array.from({ length: PENDING_FILES_MAX + 3 }, (_, n) => `${n}`);
  for (const [number, batchId] of batchIds.entries()) {
    await append(log, batchId);
    assert.equal(log.sealer.isBehind, number >= PENDING_FILES_MAX);
  }
  assert.ok(steps.backlog![0]! >= 1, "the segment in progress began with less, and is hurried");
  const pending = PENDING_FILES_MAX + 2;
  assert.deepEqual(filesOf(storage), { pending, segments: 0 });
  const idle = steps.nextIdle(storage);
  made.resolve();
  await idle;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: pending });
  assert.ok(!log.sealer.isBehind);
  assert.deepEqual(new Set(steps.backlogs.slice(4)), new Set([1]), "nothing is appended");
  const idleAgain = steps.nextIdle(storage);
  await append(log, "next");
  await idleAgain;
  assert.ok(steps.backlogs.at(-1)! < 1 / 4);
  assert.deepEqual(filesOf(storage), { pending: 0, segments: pending + 1 });
  assert.deepEqual(reports, []);
  assert.deepEqual(log.files.sealed.lastEventId, (await readAll(log.snapshot)).at(-2)!.event_id);
  assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), [...batchIds, "next"]);
  await log.close();
});

/** Appends batches, each to its own file, which are sealed once `begun` is opened. */
async function sealedTogether(files: number, options: SealingStepsOptions) {
  const opening = await opened(undefined, options);
  const { log, steps } = opening;
  const begun = Promise.withResolvers<void>();
  let active = 0;
  const found = { ...opening, begun, activeMax: 0 };
  steps.beforeMake = async () => {
    active += 1;
    await begun.promise;
    await setImmediate();
    found.activeMax = Math.max(found.activeMax, active);
    active -= 1;
  };
  for (let n = 0; n <= files; n++) await append(log, `${n}`);
  return found;
}

const AT_ONCE: [when: string, options: SealingStepsOptions, activeMax: number][] = [
  ["far behind", { backlogWaitBytes: 1 }, 2],
  ["a little behind", {}, 1],
];

for (const [when, options, activeMax] of AT_ONCE) {
  test(`sealing that is ${when} seals ${activeMax} of its files at once`, async () => {
    const run = await sealedTogether(6, options);
    const { log, storage, steps, begun, reports } = run;
    const idle = steps.nextIdle(storage);
    begun.resolve();
    await idle;
    assert.equal(run.activeMax, activeMax);
    assert.deepEqual(filesOf(storage), { pending: 0, segments: 6 });
    const batchIds = ["0", "1", "2", "3", "4", "5", "6"];
    assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), batchIds);
    assert.deepEqual(reports, []);
    await log.close();
    assert.equal(storage.openFiles, 0);
  });
}

for (const [name, failing, segments] of [["first", 0, 1], ["second", 1, 2]] as const) {
  test(`the ${name} of two seals at once that fails is retried, and leaves nothing`, async () => {
    const { log, storage, steps, begun, reports } = await sealedTogether(3, {
      backlogWaitBytes: 1,
    });
    storage.hook = ({ kind, path }) => {
      const isSecond = storage.tree().has(SEGMENT_TEMPORARY_FILES[1]);
      const isFailing = kind === "write" && path === SEGMENT_TEMPORARY_FILES[failing];
      return isSecond && isFailing ? { errno: "ENOSPC" } : null;
    };
    const paused = steps.nextPause();
    begun.resolve();
    await paused;
    assert.equal(reports.length, 1);
    // The first of the three files was sealed alone, since there was no other one yet.
    assert.deepEqual(filesOf(storage), { pending: 3 - segments, segments });
    storage.hook = null;
    const idle = steps.nextIdle(storage);
    steps.resume();
    await idle;
    assert.deepEqual(filesOf(storage), { pending: 0, segments: 3 });
    assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), ["0", "1", "2", "3"]);
    await log.close();
  });
}

test("reads switch from a pending file to all of its segments atomically", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], ["c"]]));
  await rotateOnly(storage);
  const { log, steps } = await opened(storage, {
    bounds: { events: 1, bytes: 100_000 },
    rotateBytes: 1_000_000,
  });
  const seen: string[] = [];
  const look = () => {
    const paths = log.snapshot.files.map(({ path }) => path.split("/")[0]!).join();
    if (paths !== seen.at(-1)) seen.push(paths);
    return null;
  };
  storage.hook = look;
  await steps.nextIdle(storage);
  look();
  assert.deepEqual(seen, [PENDING_FOLDER, Array(3).fill(SEGMENTS_FOLDER).join()]);
  assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), ["a", "b", "c"]);
  await log.close();
});

test("a failed seal is reported and retried with backoff, without affecting clients", async () => {
  const { log, storage, steps, reports } = await opened();
  const pausesMs = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000);
  let failed = 0;
  steps.beforeMake = () => {
    if (failed < pausesMs.length) throw new Error(`failure ${++failed}`);
  };
  await append(log, "a");
  let paused = steps.nextPause();
  const idle = steps.nextIdle(storage);
  await append(log, "b");
  for (const [number, ms] of pausesMs.entries()) {
    await paused;
    const told = `\\.ndjson: not sealed, retrying in ${ms / 1000} s: failure ${number + 1}$`;
    assert.match(reports.at(-1)!, new RegExp(`^pending/.*${told}`));
    await append(log, `c${number}`);
    paused = steps.nextPause();
    steps.resume();
  }
  await idle;
  assert.equal(reports.length, pausesMs.length);
  assert.deepEqual(steps.pausesMs, pausesMs);
  assert.equal((await readAll(log.snapshot)).length, 2 + pausesMs.length);
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 + pausesMs.length });
  await log.close();
});

/** Causes of failed seals, with the report and whether a retry fails too (`isLasting`). */
const CAUSES: [name: string, Fail, told: RegExp, isLasting: boolean][] = [
  ["runs out of space", failTemporaryFile, /s: ENOSPC/, false],
  ["finds damage in its pending file", damagePending, /s: .*corrupt at byte 0/, true],
];

type Fail = (storage: SimulatedDisk) => Promise<void> | void;

function failTemporaryFile(storage: SimulatedDisk): void {
  storage.hook = ({ kind, path }) =>
    kind === "write" && path === SEGMENT_TEMPORARY_FILES[0] ? { errno: "ENOSPC" } : null;
}

async function damagePending(storage: SimulatedDisk): Promise<void> {
  const [path] = pendingPaths(storage.tree());
  const file = await storage.open(path!, "write");
  await file.write(Buffer.from("#"), await file.size() - 2);
  await file.close();
}

for (const [name, fail, told, isLasting] of CAUSES) {
  test(`a seal that ${name} leaves no partial segment, and the log keeps working`, async () => {
    const { log, storage, steps, reports } = await opened();
    const made = Promise.withResolvers<void>();
    steps.beforeMake = () => made.promise;
    await append(log, "a");
    const paused = steps.nextPause();
    await append(log, "b");
    await fail(storage);
    made.resolve();
    await paused;
    assert.match(reports.join("\n"), /^pending.*not sealed, retrying in 1 /);
    assert.match(reports.join("\n"), told);
    assert.deepEqual(filesOf(storage), { pending: 1, segments: 0 });
    assert.deepEqual(JSON.parse(storage.contents(MANIFEST_FILE).toString()).segments, []);
    storage.hook = null;
    const idle = isLasting ? null : steps.nextIdle(storage);
    steps.resume();
    await idle;
    assert.equal(filesOf(storage).segments, isLasting ? 0 : 1);
    await append(log, "c");
    await log.close();
    assert.equal(storage.openFiles, 0, "close() ends a pause and does not wait for one");
  });
}

/** Regression: the second attempt reported an EEXIST for the file that the first one had left. */
test("a seal that cannot remove its partial segment reports why, also when it is retried", async () => {
  const { log, storage, steps, reports } = await opened();
  await append(log, "a");
  storage.hook = ({ kind, path }) => {
    if (path !== SEGMENT_TEMPORARY_FILES[0]) return null;
    return kind === "write" || kind === "remove" ? { errno: "EROFS" } : null;
  };
  const paused = steps.nextPause();
  await append(log, "b");
  await paused;
  const pausedAgain = steps.nextPause();
  steps.resume();
  await pausedAgain;
  assert.equal(reports.length, 2);
  for (const line of reports) assert.match(line, /not sealed, retrying in \d+ s: EROFS.*; mount/);
  storage.hook = null;
  await log.close();
});

test("a sealed file that cannot be removed is removed by the next startup", async () => {
  const { log, storage, steps, reports } = await opened();
  await append(log, "a");
  storage.hook = ({ kind, path }) =>
    kind === "remove" && path.startsWith(PENDING_FOLDER) ? { errno: "EIO" } : null;
  const idle = steps.nextIdle(storage);
  await append(log, "b");
  await idle;
  assert.match(reports.join("\n"), /^pending.*: sealed, but not removed until restart: EIO/);
  assert.equal(reports.length, 1);
  storage.hook = null;
  await log.close();
  const { log: next } = await openTestLog(storage);
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 });
  assert.deepEqual(batchIdsOf(await readAll(next.snapshot)), ["a", "b"]);
  await next.close();
});

/** The least rotation size that also limits a tail's index. */
const ROTATE_BYTES = 1024 * 1024;

test("a tail that cannot be rotated takes no commit beyond twice its rotation size", async () => {
  const { log, storage, steps, reports } = await opened(undefined, {
    rotateBytes: ROTATE_BYTES,
  });
  const payload = "x".repeat(0.7 * ROTATE_BYTES);
  const appendLarge = (batchId: string) =>
    log.append([preparedBatch(batchId, { events: [{ payload }] })]);
  storage.hook = ({ kind, path }) =>
    kind === "open" && path === TAIL_TEMPORARY_FILE ? { errno: "EMFILE" } : null;
  await appendLarge("a");
  await appendLarge("b");
  await assert.rejects(appendLarge("c"), StorageFullError);
  assert.match(reports.join("\n"), /^$/);
  await append(log, "small");
  assert.match(
    reports.join("\n"),
    /^tail.ndjson: not rotated, retrying at \d+ bytes: EMFILE.*; raise the limit on open files$/,
  );
  await assert.rejects(appendLarge("c"), /tail.ndjson: not rotated: EMFILE/);
  assert.equal(log.poison, null);
  storage.hook = null;
  const idle = steps.nextIdle(storage);
  await appendLarge("c");
  await idle;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 });
  assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), ["a", "b", "small", "c"]);
  await log.close();
});

test("a commit that would make a tail too large rotates it first", async () => {
  const { log, storage } = await opened(undefined, { rotateBytes: ROTATE_BYTES });
  const payload = "x".repeat(2 * ROTATE_BYTES);
  await append(log, "small");
  await log.append([preparedBatch("large", { events: [{ payload }] })]);
  assert.equal(log.files.unsealed.length + filesOf(storage).segments!, 2);
  assert.ok(storage.contents(TAIL_FILE).length > payload.length);
  await log.close();
});

test("a tail whose index is large is rotated before its size is", async () => {
  const { log, storage } = await opened(undefined, { rotateBytes: ROTATE_BYTES });
  const batchOf = (number: number) => {
    const events = Array.from({ length: 200 }, (_, n) => ({
      stream: `${number}-${n}`.padStart(NAME_BYTES_MAX, "x"),
    }));
    return preparedBatch(`${number}`, { events });
  };
  let tailBytes = 0;
  for (
    let number = 0;
    log.files.unsealed.length === 1 && filesOf(storage).segments === 0;
    number++
  ) {
    tailBytes = storage.contents(TAIL_FILE).length;
    await log.append([batchOf(number)]);
  }
  assert.ok(tailBytes < ROTATE_BYTES, `${tailBytes} bytes`);
  await log.close();
});
