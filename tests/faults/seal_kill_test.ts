/**
 * The real `seal`, killed at random moments, also several times in a row: the next `seal` or
 * `serve` goes on, and every event is there once, as it was. SEAL_KILLS says how many kills.
 */
import assert from "node:assert/strict";
import { createHash, randomFillSync } from "node:crypto";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { init } from "../../src/commands/init.ts";
import { fileStorage } from "../../src/log/file_storage.ts";
import type { Receipt } from "../../src/event/types.ts";
import type { EventLogService } from "../../src/service/event_log_service.ts";
import { runCli, signalChild, spawnCli, startServe, withFolder } from "../support/cli.ts";
import { preparedBatch } from "../support/prepared.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../support/random.ts";
import { joinPieces } from "../support/test_log.ts";
import { openWatchedService } from "../support/watched_log.ts";

const KILLS = Number(process.env.SEAL_KILLS ?? 5);
/** Kills one after the other, before anything else is done with the log. */
const KILLS_IN_A_ROW_MAX = 3;
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

/** How long a run takes until it has moved the tail, and then to its end. */
interface Pace {
  untilRotatedMs: number;
  untilEndMs: number;
}

async function measurePace(dir: string): Promise<Pace> {
  const startMs = performance.now();
  const { exited } = spawnCli(["seal", "--config", join(dir, "service.toml")]);
  let isOver = false;
  const over = exited.then(() => isOver = true);
  let untilRotatedMs = 0;
  while (!isOver && untilRotatedMs === 0) {
    const pending = await readdir(join(dir, "data", "log", "pending"));
    if (pending.length > 0) untilRotatedMs = performance.now() - startMs;
    else await delay(1);
  }
  await over;
  return { untilRotatedMs, untilEndMs: performance.now() - startMs };
}

/** Starts a sealing and kills it at a moment of its work, now and then of its start. */
async function killSeal(dir: string, random: Random, pace: Pace): Promise<void> {
  const { untilRotatedMs, untilEndMs } = pace;
  const fromMs = random() < 0.1 ? 0 : untilRotatedMs * 0.9;
  const { child, exited } = spawnCli(["seal", "--config", join(dir, "service.toml")]);
  const moment = new AbortController();
  const timer = delay(fromMs + random() * (untilEndMs - fromMs), null, { signal: moment.signal });
  timer.then(() => signalChild(child, "SIGKILL"), () => {});
  const exit = await exited;
  moment.abort();
  // One that was done before was not killed: then there was work, or an earlier one had done it.
  if (exit.signal === null) assert.ok(exit.code === 0 || isNothingLeft(exit), exit.stderr);
}

function isNothingLeft({ code, stderr }: { code: number | null; stderr: string }): boolean {
  return code === 1 && /nothing to seal\n$/.test(stderr);
}

/** What a kill has left, in a word or two. */
async function leftBehind(dir: string): Promise<string> {
  const list = (folder: string) => readdir(join(dir, "data", "log", folder));
  const [root, pending, segments] = await Promise.all([".", "pending", "segments"].map(list));
  return [
    root!.includes("tail.ndjson") ? "" : "no tail",
    root!.includes("manifest.json.tmp") ? "manifest aside" : "",
    pending!.length > 0 ? "pending" : "",
    segments!.includes("new.parquet.tmp") ? "segment aside" : "",
    segments!.filter((name) => name.endsWith(".parquet")).length > 1 ? "new segment" : "",
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

/** Goes on as an operator does: by another sealing, or by serving. */
async function goOn(dir: string, random: Random): Promise<void> {
  if (random() < 0.5) {
    const serving = await startServe(dir);
    assert.equal((await serving.stop()).code, 0);
  } else {
    const exit = await sealOf(dir);
    assert.ok(exit.code === 0 || isNothingLeft(exit), exit.stderr);
  }
}

async function assertClean(dir: string): Promise<void> {
  const exit = await sealOf(dir);
  assert.ok(exit.code === 0 || isNothingLeft(exit), exit.stderr);
  assert.equal(await leftBehind(dir), "new segment");
  const verified = await runCli(["verify", "--chain", "--config", join(dir, "service.toml")]);
  assert.equal(verified.code, 0, verified.stderr);
  const { orphans, remnants } = JSON.parse(verified.stdout);
  assert.deepEqual([orphans, remnants], [[], []]);
}

/** How often the kills of a long run left what. */
function tellCounts(left: readonly string[]): void {
  const counts: Record<string, number> = {};
  for (const words of left) counts[words] = (counts[words] ?? 0) + 1;
  process.stderr.write(`left by the kills: ${JSON.stringify(counts)}\n`);
}

const seed = testSeed();
test(`seal loses and doubles nothing through ${KILLS} kills (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  await withFolder(async (folder) => {
    const base = join(folder, "base");
    const dir = join(folder, "log");
    await mkdir(base);
    const content = await prepare(base);
    const left: string[] = [];
    await cp(base, dir, { recursive: true });
    const pace = await measurePace(dir);
    while (left.length < KILLS) {
      await rm(dir, { recursive: true });
      await cp(base, dir, { recursive: true });
      const kills = Math.min(KILLS - left.length, randomInteger(random, 1, KILLS_IN_A_ROW_MAX));
      for (let count = 0; count < kills; count++) {
        await killSeal(dir, random, pace);
        left.push(await leftBehind(dir));
      }
      if (random() < 0.8) await goOn(dir, random);
      await assertHolds(dir, content, random);
      await assertClean(dir);
      await assertHolds(dir, content, random);
    }
    if (process.env.SEAL_KILLS !== undefined) tellCounts(left);
  });
});
