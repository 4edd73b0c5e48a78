/**
 * The real `seal`, killed at random moments of its work, also on what earlier kills have left: the
 * next `seal` or `serve` goes on, and every event is there once, as it was. A kill counts when the
 * run that it ended has changed the folder and has left work. SEAL_KILLS says how many.
 */
import assert from "node:assert/strict";
import { createHash, randomFillSync } from "node:crypto";
import { cp, lstat, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { init } from "../../src/commands/init.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import type { Receipt } from "../../src/event/types.ts";
import type { EventLogService } from "../../src/service/event_log_service.ts";
import {
  type CliExit,
  runCli,
  signalChild,
  spawnCli,
  type Spawned,
  startServe,
  withFolder,
} from "../../tools/support/program.ts";
import { preparedBatch } from "../support/prepared.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import { joinPieces } from "../support/test_log.ts";
import { openWatchedService } from "../support/watched_log.ts";

const KILLS = Number(process.env.SEAL_KILLS ?? 4);
/** Kills that may come too early or too late, for each that counts. */
const MISSES_MAX = 20;
/** By what the time is multiplied in which a kill is to come, after one that came too late. */
const QUICKER_AFTER_MISS = 0.9;
const POLL_MS = 1;
const BATCHES = 60;
const BATCH_EVENTS_MAX = 400;

/** What a log must hold whatever happens to it. */
interface Content {
  /** Of all events as replay returns them. */
  sha256: string;
  receipts: Map<string, Receipt>;
}

function batchOf(batchId: string) {
  const random = seededRandom(Number(batchId));
  const events = Array.from(
    { length: randomInteger(random, 1, BATCH_EVENTS_MAX) },
    (_, number) => ({
      stream: `s-${number % 3}`,
      recordKey: `${batchId}/${number}`,
      payload: { number, text: "x".repeat(randomInteger(random, 0, 600)) },
    }),
  );
  return preparedBatch(batchId, { source: randomItem(random, ["shop", "crm"]), events });
}

/** Opens the log in this process. The caller sees to it that no other one has it open. */
async function withLog<T>(dir: string, use: (log: EventLogService) => Promise<T>): Promise<T> {
  const service = await openWatchedService({
    storage: fileStorage(join(dir, "data", "log")),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report: () => {},
  });
  try {
    return await use(service);
  } finally {
    await service.close();
  }
}

async function digestOf(log: EventLogService): Promise<string> {
  const replay = log.replay({ after: undefined, filter: {}, limitEvents: 1_000_000 });
  return createHash("sha256").update(await joinPieces(replay)).digest("hex");
}

/** A deployment with a segment, and a tail that takes a moment to seal. */
async function prepare(dir: string): Promise<Content> {
  await init(dir, () => {});
  const receipts = new Map<string, Receipt>();
  const fill = (from: number, to: number) =>
    withLog(dir, async (log) => {
      for (let number = from; number < to; number++) {
        receipts.set(`${number}`, await log.append(batchOf(`${number}`)));
      }
      return await digestOf(log);
    });
  await fill(0, 5);
  assert.equal((await sealOf(dir)).code, 0);
  return { sha256: await fill(5, BATCHES), receipts };
}

function sealOf(dir: string) {
  return runCli(["seal", "--config", join(dir, "service.toml")]);
}

/** Names, sizes and times of all files: what a run that has begun its work has changed. */
async function stateOf(dir: string): Promise<string> {
  const logDir = join(dir, "data", "log");
  const names = (await readdir(logDir, { recursive: true })).sort();
  const states = names.map(async (name) => {
    const entry = await lstat(join(logDir, name), { bigint: true }).catch(() => null);
    return `${name} ${entry?.ino} ${entry?.size} ${entry?.mtimeNs}`;
  });
  return (await Promise.all(states)).join("\n");
}

/** Starts a sealing. @returns it, once it has changed the folder or is over. */
async function sealAtWork(dir: string): Promise<{ spawned: Spawned; beganMs: number }> {
  const before = await stateOf(dir);
  const spawned = spawnCli(["seal", "--config", join(dir, "service.toml")]);
  let isOver = false;
  spawned.exited.then(() => isOver = true);
  while (!isOver && await stateOf(dir) === before) await delay(POLL_MS);
  return { spawned, beganMs: performance.now() };
}

function isRunning({ child: { exitCode, signalCode } }: Spawned): boolean {
  return exitCode === null && signalCode === null;
}

/** How long a sealing of a log is at work, in milliseconds. */
async function measureWork(dir: string): Promise<number> {
  const { spawned, beganMs } = await sealAtWork(dir);
  assert.equal((await spawned.exited).code, 0);
  return performance.now() - beganMs;
}

/** Steps that are over in a moment: a kill waits until it sees one. */
const SHORT_STEPS = ["no tail", "unlisted segment", "manifest aside", "covered pending"];

/**
 * Kills a sealing some time into its work, or when a short step of it is seen.
 * @returns whether it was still at work.
 */
async function killSeal(dir: string, moment: number | string): Promise<boolean> {
  const { spawned, beganMs } = await sealAtWork(dir);
  let isOver = false;
  spawned.exited.then(() => isOver = true);
  while (!isOver && !await hasCome(dir, moment, beganMs)) await delay(0);
  if (isRunning(spawned)) signalChild(spawned.child, "SIGKILL");
  const exit = await spawned.exited;
  if (exit.signal === "SIGKILL") return (await leftBehind(dir)) !== "nothing";
  assertEnded(exit);
  return false;
}

async function hasCome(dir: string, moment: number | string, beganMs: number): Promise<boolean> {
  return typeof moment === "number"
    ? performance.now() - beganMs >= moment
    : (await leftBehind(dir)).includes(moment);
}

/** Where earlier runs have left only what is to be cleaned up, there is nothing to seal. */
function assertEnded({ code, stderr }: CliExit): void {
  assert.ok(code === 0 || code === 1 && /nothing to seal\n$/.test(stderr), stderr);
}

/** What a sealing that was cut off has left, in a word or two. */
async function leftBehind(dir: string): Promise<string> {
  const logDir = join(dir, "data", "log");
  const list = (folder: string) => readdir(join(logDir, folder));
  const [root, pending, segments] = await Promise.all([".", "pending", "segments"].map(list));
  const manifest = await readFile(join(logDir, "manifest.json"), "utf8");
  const isUnlisted = (name: string) => name.endsWith(".parquet") && !manifest.includes(name);
  const last = JSON.parse(manifest).segments.at(-1).last_event_id;
  return [
    root!.includes("tail.ndjson") ? "" : "no tail",
    root!.includes("manifest.json.tmp") ? "manifest aside" : "",
    pending!.some((name) => name.slice(37, 73) <= last) ? "covered pending" : "",
    pending!.some((name) => name.slice(37, 73) > last) ? "pending" : "",
    segments!.includes("new.parquet.tmp") ? "segment aside" : "",
    segments!.some(isUnlisted) ? "unlisted segment" : "",
  ].filter((word) => word !== "").join(", ") || "nothing";
}

async function assertHolds(dir: string, { sha256, receipts }: Content, random: Random) {
  await withLog(dir, async (log) => {
    assert.equal(await digestOf(log), sha256, "every event is there once, as it was");
    for (let count = 0; count < 5; count++) {
      const batchId = randomItem(random, [...receipts.keys()]);
      const again = await log.append(batchOf(batchId));
      assert.deepEqual(again, { ...receipts.get(batchId)!, status: "duplicate" });
    }
  });
}

interface Verified {
  events_checked: number;
  orphans: string[];
  remnants: string[];
}

async function verifyChain(dir: string): Promise<Verified> {
  const verified = await runCli(["verify", "--chain", "--config", join(dir, "service.toml")]);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  return JSON.parse(verified.stdout);
}

/** Ends a sealing with a signal that it obeys: segments cover a part of the pending file then. */
async function stopSeal(dir: string): Promise<void> {
  const { spawned } = await sealAtWork(dir);
  if (isRunning(spawned)) signalChild(spawned.child, "SIGTERM");
  assertEnded(await spawned.exited);
}

/** Goes on as an operator does: by serving, or by sealing the rest. */
async function goOn(dir: string, command: "seal" | "serve"): Promise<void> {
  if (command === "seal") {
    assertEnded(await sealOf(dir));
  } else {
    const serving = await startServe(dir);
    assert.equal((await serving.stop()).code, 0);
  }
}

/** How often the kills of a long run left what. */
function tellCounts(left: readonly string[], misses: number): void {
  const counts: Record<string, number> = {};
  for (const words of left) counts[words] = (counts[words] ?? 0) + 1;
  const told = JSON.stringify(counts);
  process.stderr.write(`left by ${left.length} kills (${misses} missed): ${told}\n`);
}

const seed = testSeed();
test(`seal loses and doubles nothing through ${KILLS} kills at work (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  await withFolder(async (folder) => {
    const base = join(folder, "base");
    const dir = join(folder, "log");
    await mkdir(base);
    const content = await prepare(base);
    const events = [...content.receipts.values()].reduce((sum, { events }) => sum + events, 0);
    const renew = async () => {
      await rm(dir, { recursive: true, force: true });
      await cp(base, dir, { recursive: true });
    };
    await renew();
    let workMs = await measureWork(dir);
    const left: string[] = [];
    let misses = 0;
    await renew();
    while (left.length < KILLS) {
      if (random() < 0.3) await stopSeal(dir);
      const moment = random() < 0.5 ? random() * workMs : randomItem(random, SHORT_STEPS);
      if (!await killSeal(dir, moment)) {
        assert.ok(++misses <= KILLS * MISSES_MAX, "kills do not come in time");
        // It may have been measured while the machine was busy.
        if (typeof moment === "number") workMs *= QUICKER_AFTER_MISS;
        await renew();
        continue;
      }
      left.push(await leftBehind(dir));
      assert.equal((await verifyChain(dir)).events_checked, events);
      const command = left.length % 2 === 0 ? "seal" : "serve";
      await goOn(dir, command);
      await assertHolds(dir, content, random);
      const { events_checked, orphans, remnants } = await verifyChain(dir);
      assert.deepEqual([events_checked, orphans, remnants], [events, [], []]);
      if (command === "seal") {
        assert.equal(await leftBehind(dir), "nothing");
        await renew();
      }
    }
    if (process.env.SEAL_KILLS !== undefined) tellCounts(left, misses);
  });
});
