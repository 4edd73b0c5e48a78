/** The thread that makes segments: what it makes, and what is told of one that fails or dies. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Worker } from "node:worker_threads";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import { PENDING_FOLDER, SEGMENT_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { openLog, SILENT_LISTENER } from "../../../src/log/log.ts";
import { FULL_SPEED, paceBy, SealBacklog } from "../../../src/log/sealing/pace.ts";
import { sealThread } from "../../../src/log/sealing/seal_thread.ts";
import {
  inPlaceMaker,
  type SegmentMaker,
  type SegmentTask,
} from "../../../src/log/sealing/segment_maker.ts";
import { removeIfThere } from "../../../src/log/storage/storage.ts";
import { GENESIS_HEAD_HEX } from "../../../src/event/chain.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { testTime } from "../../support/test_log.ts";

/** A folder with a pending file, and the task to make a segment of all of it. */
async function pendingIn(folder: string): Promise<SegmentTask> {
  const storage = fileStorage(folder);
  const log = await openLog({ ...testTime(), storage, listener: SILENT_LISTENER });
  for (const batchId of ["a", "b"]) {
    const events = Array.from({ length: 300 }, (_, n) => ({ payload: `${n}`.repeat(50) }));
    await log.append([preparedBatch(batchId, { events })]);
  }
  // A sealing that is stopped behind the rotation.
  await assert.rejects(log.seal(() => {}, { startPace: () => assert.fail("stopped") }), /stopped/);
  await log.close();
  const [name] = await readdir(join(folder, PENDING_FOLDER));
  const path = `${PENDING_FOLDER}/${name}`;
  const { length: endBytes } = await readFile(join(folder, path));
  return { path, startBytes: 0, endBytes, previousHead: GENESIS_HEAD_HEX };
}

test("sealThread() makes the segment that is made in place, at whatever pace", () =>
  withFolder(async (folder) => {
    const task = await pendingIn(folder);
    const storage = fileStorage(folder);
    const makers = [
      sealThread(folder),
      ...[FULL_SPEED, paceBy(new SealBacklog())].map((pace) =>
        inPlaceMaker(storage, { startPace: () => pace })
      ),
    ];
    const made = [];
    for (const maker of makers) {
      const { facts, endBytes } = await maker.make(task);
      const bytes = await readFile(join(folder, SEGMENT_TEMPORARY_FILE));
      made.push({ facts, endBytes, bytes });
      await removeIfThere(storage, SEGMENT_TEMPORARY_FILE);
      await maker.close();
    }
    assert.equal(made[0]!.facts.events, 600);
    assert.equal(made[0]!.endBytes, task.endBytes);
    for (const other of made.slice(1)) assert.deepEqual(other, made[0]);
  }));

test("sealThread() hands on why a segment could not be made, and makes the next", () =>
  withFolder(async (folder) => {
    const task = await pendingIn(folder);
    const maker = sealThread(folder);
    await assert.rejects(maker.make({ ...task, path: "pending/none" }), /ENOENT/);
    await assert.rejects(maker.make({ ...task, previousHead: "0".repeat(64) }), /chain head/);
    await removeIfThere(fileStorage(folder), SEGMENT_TEMPORARY_FILE);
    assert.equal((await maker.make(task)).facts.events, 600);
    await maker.close();
  }));

const TASK: SegmentTask = { path: "x", startBytes: 0, endBytes: 1, previousHead: "" };

/** A thread that does what the test says. */
class FakeWorker extends EventEmitter {
  posted = 0;

  postMessage(): void {
    this.posted += 1;
  }

  terminate(): Promise<number> {
    this.emit("exit", 1);
    return Promise.resolve(1);
  }
}

function fakeThreads(threads: FakeWorker[], idleMs?: number) {
  let started = 0;
  const start = () => {
    const thread = threads[started++];
    if (thread === undefined) throw new Error("no room");
    return thread as unknown as Worker;
  };
  return sealThread("folder", { start, ...(idleMs === undefined ? {} : { idleMs }) });
}

const ANSWER = { made: { facts: {}, endBytes: 1 } };

/** Has the first of the threads make a segment. */
async function makeOne(maker: SegmentMaker, thread: FakeWorker): Promise<void> {
  const made = maker.make(TASK);
  thread.emit("message", ANSWER);
  await made;
}

test("sealThread() keeps a thread that rests for the next segment", async () => {
  const thread = new FakeWorker();
  const maker = fakeThreads([thread]);
  await makeOne(maker, thread);
  maker.rest();
  await makeOne(maker, thread);
  assert.equal(thread.posted, 2);
  await maker.close();
});

test("sealThread() ends a thread that has rested for long, and starts another one", async () => {
  const threads = [new FakeWorker(), new FakeWorker()];
  const maker = fakeThreads(threads, 1);
  await makeOne(maker, threads[0]!);
  const ended = new Promise((resolve) => threads[0]!.once("exit", resolve));
  maker.rest();
  // What it waits by does not keep a process running.
  const running = setInterval(() => {}, 1000);
  await ended;
  clearInterval(running);
  await makeOne(maker, threads[1]!);
  assert.deepEqual(threads.map(({ posted }) => posted), [1, 1]);
  await maker.close();
});

test("sealThread() rejects when its thread dies, and starts another one", async () => {
  const threads = Array.from({ length: 3 }, () => new FakeWorker());
  const maker = fakeThreads(threads);
  const first = maker.make(TASK);
  threads[0]!.emit("error", new Error("out of memory"));
  threads[0]!.emit("exit", 1);
  await assert.rejects(first, /^Error: out of memory$/);
  const second = maker.make(TASK);
  threads[0]!.emit("message", { failure: "too late" });
  threads[1]!.emit("exit", 1);
  await assert.rejects(second, /the thread has ended/);
  const third = maker.make(TASK);
  await maker.close();
  await assert.rejects(third, /the thread was stopped/);
  assert.deepEqual(threads.map(({ posted }) => posted), [1, 1, 1]);
  await maker.close();
});

test("sealThread() starts no thread once it is closed", async () => {
  const thread = new FakeWorker();
  const maker = fakeThreads([thread]);
  await maker.close();
  await assert.rejects(maker.make(TASK), /the thread was stopped/);
  maker.rest();
  assert.equal(thread.posted, 0);
});

test("sealThread() rejects when no thread can be started", async () => {
  const maker = fakeThreads([]);
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(maker.make(TASK), /a thread could not be started: no room/);
  }
  await maker.close();
});
