/** Sealing while a log is open: when it happens, what is told of it, what its failures cost. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import {
  MANIFEST_FILE,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILE,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "../../../src/log/storage/file_names.ts";
import { type Log, PENDING_FILES_MAX } from "../../../src/log/log.ts";
import { Gate } from "../../support/gate.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly } from "../../support/sealing.ts";
import { SealingSteps, type SealingStepsOptions } from "../../support/sealing_steps.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { logTree, openTestLog, readAll } from "../../support/test_log.ts";
import { SEAL_RETRY_MS, SEAL_RETRY_MS_MAX } from "../../../src/log/sealing/background_sealing.ts";

async function opened(
  storage: SimulatedDisk = new SimulatedDisk(),
  options: SealingStepsOptions = {},
) {
  const steps = new SealingSteps(options);
  return { storage, steps, ...await openTestLog(storage, undefined, steps.on()) };
}

async function append(log: Log, ...batchIds: string[]): Promise<void> {
  for (const batchId of batchIds) await log.append([preparedBatch(batchId)]);
}

function batchIdsOf(events: readonly CommittedEvent[]): string[] {
  return events.map(({ batch_id }) => batch_id);
}

/** What is in the folders of a log: how many of each kind. */
function filesOf(storage: SimulatedDisk): Record<string, number> {
  const names = [...storage.tree().keys()];
  const inFolder = (folder: string) => names.filter((name) => name.startsWith(`${folder}/`)).length;
  return { pending: inFolder(PENDING_FOLDER), segments: inFolder(SEGMENTS_FOLDER) };
}

test("append() rotates a tail that has its size, and the log seals it on its own", async () => {
  const { log, storage, steps, reports } = await opened();
  await append(log, "a");
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 0 });
  const idle = steps.nextIdle(storage);
  await append(log, "b");
  await idle;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 });
  assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), ["a", "b"]);
  assert.deepEqual(log.snapshot.files.map(({ path }) => path.split("/")[0]), [
    SEGMENTS_FOLDER,
    TAIL_FILE,
  ]);
  await log.close();
  assert.deepEqual(reports, []);
  assert.equal(storage.openFiles, 0);
});

test("append() rotates tails while others wait to be sealed, up to a bound", async () => {
  const { log, storage, steps } = await opened();
  const made = new Gate();
  steps.beforeMake = () => made.opened;
  const batchIds = Array.from({ length: PENDING_FILES_MAX + 3 }, (_, n) => `${n}`);
  await append(log, ...batchIds);
  assert.deepEqual(filesOf(storage), { pending: PENDING_FILES_MAX, segments: 0 });
  const unsealed = [...storage.tree()].filter(([path]) => path.endsWith(".ndjson"));
  const unsealedBytes = unsealed.reduce((sum, [, bytes]) => sum + bytes!.length, 0);
  const idle = steps.nextIdle(storage);
  made.open();
  await idle;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: PENDING_FILES_MAX });
  assert.equal(steps.backlogs[1], unsealedBytes - unsealed[0]![1]!.length);
  const idleAgain = steps.nextIdle(storage);
  await append(log, "next");
  await idleAgain;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: PENDING_FILES_MAX + 1 });
  assert.deepEqual(log.sealed.lastEventId, (await readAll(log.snapshot)).at(-2)!.event_id);
  assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), [...batchIds, "next"]);
  await log.close();
});

test("a pending file of several segments is read from them all at once", async () => {
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

test("openLog() seals the pending files that it finds, and the oldest first", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  await rotateOnly(storage);
  const steps = new SealingSteps({ rotateBytes: 1_000_000 });
  const idle = steps.nextIdle(storage);
  const { log } = await openTestLog(storage, undefined, steps.on());
  await idle;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 });
  assert.deepEqual(batchIdsOf(await readAll(log.snapshot)), ["a", "b"]);
  await log.close();
});

test("a sealing that fails is told and tried again ever later, and costs nobody anything", async () => {
  const { log, storage, steps, reports } = await opened();
  const failures = 11;
  let makes = 0;
  steps.beforeMake = () => {
    makes += 1;
    if (makes <= failures) throw new Error(`failure ${makes}`);
  };
  await append(log, "a");
  let paused = steps.nextPause();
  const idle = steps.nextIdle(storage);
  await append(log, "b");
  for (let failed = 1; failed <= failures; failed++) {
    await paused;
    assert.match(
      reports.at(-1)!,
      new RegExp(
        `^pending/.*\\.ndjson: not sealed, tried again in \\d+ s: failure ${failed}$`,
      ),
    );
    await append(log, `c${failed}`);
    paused = steps.nextPause();
    steps.resume();
  }
  await idle;
  assert.equal(reports.length, failures);
  const expected = Array.from(
    { length: failures },
    (_, n) => Math.min(SEAL_RETRY_MS * 2 ** n, SEAL_RETRY_MS_MAX),
  );
  assert.deepEqual(steps.pausesMs, expected);
  assert.equal(expected.at(-1), SEAL_RETRY_MS_MAX);
  assert.equal((await readAll(log.snapshot)).length, 2 + failures);
  assert.deepEqual(filesOf(storage), { pending: 0, segments: PENDING_FILES_MAX });
  await log.close();
});

test("a sealing that finds no room leaves no part of a segment behind", async () => {
  const { log, storage, steps, reports } = await opened();
  await append(log, "a");
  storage.hook = ({ kind, path }) =>
    kind === "write" && path === SEGMENT_TEMPORARY_FILE ? { errno: "ENOSPC" } : null;
  const paused = steps.nextPause();
  await append(log, "b");
  await paused;
  assert.match(reports.join("\n"), /not sealed, tried again in 1 s: ENOSPC/);
  assert.deepEqual(filesOf(storage), { pending: 1, segments: 0 });
  storage.hook = null;
  const idle = steps.nextIdle(storage);
  steps.resume();
  await idle;
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 });
  await log.close();
});

test("damage of a pending file never becomes a segment, and the rest goes on", async () => {
  const { log, storage, steps, reports } = await opened();
  const made = new Gate();
  steps.beforeMake = () => made.opened;
  await append(log, "a");
  const paused = steps.nextPause();
  await append(log, "b");
  const path = [...storage.tree().keys()].find((name) => name.startsWith(`${PENDING_FOLDER}/`))!;
  const file = await storage.open(path, "write");
  await file.write(Buffer.from("#"), await file.size() - 2);
  await file.close();
  made.open();
  await paused;
  assert.match(reports.join("\n"), /^pending.*not sealed, tried again in 1 s: .*corrupt at byte 0/);
  assert.deepEqual(filesOf(storage), { pending: 1, segments: 0 });
  assert.deepEqual(JSON.parse(storage.contents(MANIFEST_FILE).toString()).segments, []);
  await append(log, "c");
  await log.close();
});

test("a sealed file that cannot be removed is left for the next start, which removes it", async () => {
  const { log, storage, steps, reports } = await opened();
  await append(log, "a");
  storage.hook = ({ kind, path }) =>
    kind === "remove" && path.startsWith(PENDING_FOLDER) ? { errno: "EIO" } : null;
  const idle = steps.nextIdle(storage);
  await append(log, "b");
  await idle;
  assert.match(reports.join("\n"), /^pending.*: sealed, left for the next start to remove: EIO/);
  assert.equal(reports.length, 1);
  storage.hook = null;
  await log.close();
  const { log: next } = await openTestLog(storage);
  assert.deepEqual(filesOf(storage), { pending: 0, segments: 1 });
  assert.deepEqual(batchIdsOf(await readAll(next.snapshot)), ["a", "b"]);
  await next.close();
});

test("close() ends a pause and waits for none", async () => {
  const { log, steps, storage } = await opened();
  steps.beforeMake = () => {
    throw new Error("no");
  };
  await append(log, "a");
  const paused = steps.nextPause();
  await append(log, "b");
  await paused;
  await log.close();
  assert.equal(storage.openFiles, 0);
});
