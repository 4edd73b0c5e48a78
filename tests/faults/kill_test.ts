/**
 * The real service, killed at random moments of its start, of ingest under concurrent writers and
 * of its shutdown, with a sealing now and then. Every acknowledged batch must be there once, whole,
 * with the ids of its receipt; every other one is absent or whole. KILLS says how many kills.
 */
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  runCli,
  type Serving,
  signalChild,
  spawnCli,
  type Spawned,
  startServe,
  untilReported,
  withFolder,
} from "../../tools/support/program.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import type { SubmittedBatch } from "../support/submitted.ts";
import { KillHistory } from "./support/kill_history.ts";
import { readOn, retryUnanswered, submit } from "./support/killed_service.ts";

const KILLS = Number(process.env.KILLS ?? 25);
const WRITERS = 8;
/** Ingest is killed after so many receipts at the most, and a moment. */
const RECEIPTS_MAX = 60;
const MOMENT_MS_MAX = 5;
const POLL_MS = 1;
const SOURCES = ["shop", "crm", "erp"];
const PAYLOAD_SIZES = [0, 10, 300, 300, 300, 300, 3000, 3000, 3000, 100_000];

/** A run in the making. */
interface Run {
  dir: string;
  random: Random;
  history: KillHistory;
  /** Kills by what they struck, and what was seen besides. */
  tally: Record<string, number>;
  batches: number;
}

function count({ tally }: Run, name: string): void {
  tally[name] = (tally[name] ?? 0) + 1;
}

function killsOf({ tally }: Run): number {
  return Object.entries(tally).reduce(
    (sum, [name, kills]) => name.startsWith("killed") ? sum + kills : sum,
    0,
  );
}

function nextBatch(run: Run): SubmittedBatch {
  const { random } = run;
  const batchId = `${run.batches++}`;
  const events = Array.from({ length: randomInteger(random, 1, 6) }, (_, number) => ({
    stream: "records",
    record_key: `${batchId}/${number}`,
    kind: "upserted",
    payload: { number, text: "x".repeat(randomItem(random, PAYLOAD_SIZES)) },
  }));
  return { batch_id: batchId, source: randomItem(random, SOURCES), events };
}

/** Lets the writers write until the process ends, which `end` brings about after some receipts. */
async function writeUntilEnd(run: Run, serving: Serving, end: () => void): Promise<void> {
  const { history } = run;
  let remainingReceipts = randomInteger(run.random, 1, RECEIPTS_MAX);
  const write = async () => {
    for (;;) {
      const batch = nextBatch(run);
      history.submit(batch);
      const receipt = await submit(serving, batch);
      if (receipt === null) return;
      assert.equal(receipt.status, "committed");
      history.acknowledge(batch, receipt);
      remainingReceipts -= 1;
      if (remainingReceipts === 0) end();
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
}

function isRunning({ child: { exitCode, signalCode } }: Spawned): boolean {
  return exitCode === null && signalCode === null;
}

/** Kills a process, or asks it to end and then kills it if it has not. */
async function killUnderWriters(run: Run, serving: Serving): Promise<void> {
  const isShutdown = run.random() < 0.2;
  const momentMs = run.random() * MOMENT_MS_MAX;
  const isAtOnce = !isShutdown && run.random() < 0.5;
  const kill = () => isRunning(serving) && signalChild(serving.child, "SIGKILL");
  await writeUntilEnd(run, serving, () => {
    if (isShutdown) signalChild(serving.child, "SIGTERM");
    // With the receipt in hand: what it promises must be true by now.
    if (isAtOnce) kill();
    else setTimeout(kill, momentMs);
  });
  const exit = await serving.exited;
  if (exit.signal === "SIGKILL") count(run, isShutdown ? "killed in shutdown" : "killed in ingest");
  else assert.deepEqual([exit.code, isShutdown], [0, true], exit.stderr);
}

/** Starts the service, runs `use`, and leaves no process behind. */
async function withServing(run: Run, use: (serving: Serving) => Promise<void>): Promise<void> {
  const serving = await startServe(run.dir);
  try {
    if (serving.output.stderr.includes("unfinished commit")) count(run, "torn commits removed");
    await readOn(run.history, serving);
    await retryUnanswered(
      run.history,
      serving,
      (isCommitted) =>
        count(run, isCommitted ? "unanswered and there, whole" : "unanswered and not there"),
    );
    await use(serving);
  } finally {
    if (isRunning(serving)) await serving.stop("SIGKILL");
  }
}

/** Kills a start at any moment of it, or as soon as its recovery writes, or when it binds. */
async function killStart(run: Run, startMs: number): Promise<void> {
  const before = await tailState(run);
  const starting = spawnCli(["--config", join(run.dir, "service.toml"), "serve"]);
  const choice = run.random();
  const isServing = () => starting.output.stderr.includes("serving");
  if (choice < 0.5) await delay(run.random() * startMs);
  else if (choice < 0.6) await untilReported(starting, "serving");
  else while (!isServing() && await tailState(run) === before) await delay(POLL_MS);
  assert.ok(isRunning(starting), starting.output.stderr);
  const wasRecovering = await tailState(run) !== before;
  signalChild(starting.child, "SIGKILL");
  await starting.exited;
  count(run, wasRecovering ? "killed once recovery had written" : "killed in start");
}

/** What changes when a recovery writes the last commit again. */
async function tailState({ dir }: Run): Promise<string> {
  const tail = await stat(join(dir, "data", "log", "tail.ndjson"), { bigint: true })
    .catch(() => null);
  return `${tail?.ino} ${tail?.size} ${tail?.mtimeNs}`;
}

async function seal(run: Run): Promise<void> {
  const { code, stderr } = await runCli(["seal", "--config", join(run.dir, "service.toml")]);
  assert.ok(code === 0 || code === 1 && /nothing to seal\n$/.test(stderr), stderr);
  count(run, "sealed");
}

/** How long a start takes about, in milliseconds; only aims kills. */
async function measureStart({ dir }: Run): Promise<number> {
  const beganMs = performance.now();
  const serving = await startServe(dir);
  const startMs = performance.now() - beganMs;
  await serving.stop("SIGKILL");
  return startMs;
}

async function killAgainAndAgain(run: Run): Promise<void> {
  const startMs = await measureStart(run);
  while (killsOf(run) < KILLS) {
    if (run.random() < 0.3) await killStart(run, startMs);
    else await withServing(run, (serving) => killUnderWriters(run, serving));
    if (run.random() < 0.15) await seal(run);
  }
}

/** Everything once more from the first event on, after a clean end, by replay and by verify. */
async function checkAll(run: Run): Promise<void> {
  const { history, dir } = run;
  const stop = async (serving: Serving) => assert.equal((await serving.stop()).code, 0);
  await withServing(run, stop);
  history.rewind();
  await withServing(run, stop);
  assert.equal(history.committed, history.submitted);
  assert.equal(history.acknowledged, history.submitted);
  const { code, stdout } = await runCli([
    "verify",
    "--chain",
    "--config",
    join(dir, "service.toml"),
  ]);
  assert.equal(code, 0, stdout);
}

const seed = testSeed();
test(`serve keeps what it acknowledged through ${KILLS} kills (SEED=${seed})`, async () => {
  await withFolder(async (dir) => {
    const run: Run = {
      dir,
      random: seededRandom(seed),
      history: new KillHistory(),
      tally: {},
      batches: 0,
    };
    assert.equal((await runCli(["init", dir])).code, 0);
    await killAgainAndAgain(run);
    await checkAll(run);
    if (process.env.KILLS === undefined) return;
    const { acknowledged, broken } = run.history;
    const { lost, half } = broken;
    process.stderr.write(
      `${killsOf(run)} kills, ${acknowledged} batches acknowledged, ${lost.length} lost, ` +
        `${half.length} half: ${JSON.stringify(run.tally)}\n`,
    );
  });
});
