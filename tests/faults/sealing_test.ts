/**
 * The real service that seals its tail on a thread while it serves: killed at random moments of
 * that, and followed, verified and watched through it. Every acknowledged batch is there once.
 * KILLS says how many kills, ROTATE_KIB how large a tail is sealed.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  runCli,
  type Serving,
  signalChild,
  startServe,
  withFolder,
} from "../../tools/support/program.ts";
import { type Random, seededRandom, testSeed } from "../../tools/support/random.ts";
import type { SubmittedBatch } from "../support/submitted.ts";
import { IdFollower } from "./support/id_follower.ts";
import { KillHistory } from "./support/kill_history.ts";
import { readOn, retryUnanswered, submit } from "./support/killed_service.ts";

const KILLS = Number(process.env.KILLS ?? 5);
const ROTATE_BYTES = Number(process.env.ROTATE_KIB ?? 512) * 1024;
const WRITERS = 4;
const BATCH_EVENTS = 100;
const TEXT = "x".repeat(300);
/** What a thread has open for itself, in either runtime. */
const THREAD_FILES_MAX = 12;
const POLL_MS = 2;
/** More than come while so many segments are made. */
const FOLLOWED_EVENTS_MAX = 1_000_000;
/** A kill comes so long after a rotation at the most: in about twice the time of a sealing. */
const MOMENT_MS_MAX = 400;

/** A deployment under test, and what it was told. */
interface Run {
  dir: string;
  history: KillHistory;
  batches: number;
}

async function newRun(dir: string): Promise<Run> {
  assert.equal((await runCli(["init", dir])).code, 0);
  return { dir, history: new KillHistory(), batches: 0 };
}

function nextBatch(run: Run): SubmittedBatch {
  const batchId = `${run.batches++}`;
  const events = Array.from({ length: BATCH_EVENTS }, (_, number) => ({
    stream: `records-${number % 7}`,
    record_key: `${batchId}/${number}`,
    kind: "upserted",
    payload: { number, text: TEXT },
  }));
  return { batch_id: batchId, source: "shop", events };
}

/** Appends until the process ends, or `isOver` says so. */
async function write(run: Run, serving: Serving, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const batch = nextBatch(run);
    run.history.submit(batch);
    const receipt = await submit(serving, batch);
    if (receipt === null) return;
    assert.equal(receipt.status, "committed");
    run.history.acknowledge(batch, receipt);
  }
}

function writers(run: Run, serving: Serving, isOver: () => boolean): Promise<unknown> {
  return Promise.all(Array.from({ length: WRITERS }, () => write(run, serving, isOver)));
}

function filesIn({ dir }: Run, folder: string): string[] {
  return readdirSync(join(dir, "data", "log", folder));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(POLL_MS);
}

/** Kills the service some time after it has rotated its tail. */
async function killInSealing(run: Run, serving: Serving, random: Random): Promise<string> {
  let isOver = false;
  const writing = writers(run, serving, () => isOver);
  const ended = serving.exited.then(() => isOver = true);
  const before = filesIn(run, "segments").length;
  await until(() => filesIn(run, "pending").length > 0 || filesIn(run, "segments").length > before);
  await delay(random() * MOMENT_MS_MAX);
  signalChild(serving.child, "SIGKILL");
  await ended;
  await writing;
  const { stderr } = serving.output;
  assert.doesNotMatch(stderr, /not sealed|not rotated|stopped/, stderr);
  if (filesIn(run, "segments").some((name) => name.endsWith(".tmp"))) return "a segment half made";
  return filesIn(run, "pending").length > 0 ? "a file pending" : "nothing pending";
}

async function verifyChain({ dir, history }: Run): Promise<void> {
  const { code, stdout, stderr } = await runCli([
    ...["verify", "--chain", "--config", join(dir, "service.toml")],
  ]);
  assert.equal(code, 0, `${stdout}${stderr}`);
  const report = JSON.parse(stdout);
  assert.equal(report.events_checked, history.submitted * BATCH_EVENTS);
  assert.deepEqual([...report.orphans, ...report.remnants], []);
}

const seed = testSeed();
test(`serve keeps what it acknowledged, killed ${KILLS} times while it seals (SEED=${seed})`, () =>
  withFolder(async (dir) => {
    const run = await newRun(dir);
    const random = seededRandom(seed);
    const struck: Record<string, number> = {};
    for (let kills = 0; kills < KILLS; kills++) {
      const serving = await startServe(dir, { rotateBytes: ROTATE_BYTES });
      await readOn(run.history, serving);
      await retryUnanswered(run.history, serving);
      const at = await killInSealing(run, serving, random);
      struck[at] = (struck[at] ?? 0) + 1;
    }
    const serving = await startServe(dir, { rotateBytes: ROTATE_BYTES });
    await readOn(run.history, serving);
    await retryUnanswered(run.history, serving);
    run.history.rewind();
    await readOn(run.history, serving);
    assert.equal((await serving.stop()).code, 0);
    assert.equal(run.history.committed, run.history.submitted);
    await verifyChain(run);
    if (process.env.KILLS === undefined) return;
    const { submitted } = run.history;
    process.stderr.write(`${KILLS} kills, ${submitted} batches: ${JSON.stringify(struck)}\n`);
  }));

test("serve seals while it is followed, verified and read, and holds no more files for it", () =>
  withFolder(async (dir) => {
    const run = await newRun(dir);
    const serving = await startServe(dir, { rotateBytes: ROTATE_BYTES });
    try {
      const files = `/proc/${serving.child.pid}/fd`;
      const openFiles = () => existsSync(files) ? readdirSync(files).length : 0;
      const segmentsWanted = 3;
      const first = nextBatch(run);
      run.history.submit(first);
      run.history.acknowledge(first, (await submit(serving, first))!);
      const socketPath = join(dir, "data", "ground.sock");
      const follower = await IdFollower.open(socketPath, FOLLOWED_EVENTS_MAX);
      const before = openFiles();
      const isSealed = () => filesIn(run, "segments").filter((name) => name.endsWith(".parquet"));
      await Promise.all([
        writers(run, serving, () => isSealed().length >= segmentsWanted),
        (async () => {
          await until(() => isSealed().length > 1);
          const config = ["--config", join(dir, "service.toml")];
          const beside = await runCli(["verify", "--chain", ...config]);
          assert.equal(beside.code, 0, `${beside.stdout}${beside.stderr}`);
        })(),
      ]);
      await until(() => filesIn(run, "pending").length === 0);
      await until(() => follower.events === run.history.submitted * BATCH_EVENTS);
      follower.close();
      await readOn(run.history, serving);
      // A descriptor for each segment, and those of connections and of the thread.
      const filesMax = before + isSealed().length + 2 * WRITERS + THREAD_FILES_MAX;
      assert.ok(openFiles() <= filesMax, `${openFiles()} files, not ${filesMax}`);
      const { stderr } = serving.output;
      assert.doesNotMatch(stderr, /sealed|rotated/, stderr);
    } finally {
      assert.equal((await serving.stop()).code, 0);
    }
    await verifyChain(run);
  }));
