/** SIGINT and SIGTERM sent to `init`, `seal` and `verify`. `serve` has its own tests. */
import assert from "node:assert/strict";
import { cp, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  type CliExit,
  isRunning,
  runCli,
  signalChild,
  spawnCli,
  spawnScript,
  withFolder,
} from "../../tools/support/program.ts";
import { COMMIT_EVENTS, fillDeployment } from "../support/filled.ts";

const SIGNALLED = fileURLToPath(new URL("../support/signalled.ts", import.meta.url));
const POLL_MS = 1;
/** Maximum number of runs that may end before the signal arrives. */
const ATTEMPTS_MAX = 10;

/** Runs a command whose process signals itself on startup. */
function runSignalled(signals: string, command: string, dir: string): Promise<CliExit> {
  const permissions = ["--allow-read", "--allow-write", "--allow-run", "--allow-sys"];
  return spawnScript(SIGNALLED, [signals, command, dir], { permissions }).exited;
}

async function verifiedEvents(dir: string): Promise<number> {
  const { code, stdout, stderr } = await runCli(["verify", "--config", join(dir, "service.toml")]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).events_checked;
}

/** Adds up the events in the output of `seal`. */
function sealedEvents(stderr: string): number {
  const counts = [...stderr.matchAll(/^sealed \S+ \((\d+) events, head [0-9a-f]{64}\)$/gm)];
  return counts.reduce((sum, [, events]) => sum + Number(events), 0);
}

/**
 * Sends signals to a `seal` that is writing a segment. Repeats on copies of a deployment until one
 * seal is interrupted.
 */
async function interrupted(
  folder: string,
  signals: readonly NodeJS.Signals[],
  isInTime: (exit: CliExit) => boolean,
): Promise<{ dir: string; exit: CliExit }> {
  await mkdir(join(folder, "base"));
  await fillDeployment(join(folder, "base"), COMMITS);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const dir = join(folder, `${attempt}`);
    await cp(join(folder, "base"), dir, { recursive: true });
    const { child, exited } = spawnCli(["seal", "--config", join(dir, "service.toml")]);
    const segments = join(dir, "data", "log", "segments");
    while (isRunning({ child }) && (await readdir(segments)).length === 0) await delay(POLL_MS);
    for (const signal of signals) signalChild(child, signal);
    const exit = await exited;
    if (isInTime(exit)) return { dir, exit };
    assert.equal(exit.code, 0, exit.stderr);
  }
  throw new Error(`seal ended before the signal ${ATTEMPTS_MAX} times`);
}

const COMMITS = 40;
const EVENTS = COMMITS * COMMIT_EVENTS;
const STOPPED = "stopped before everything was sealed; run seal again to continue\n";

test("seal exits 0 on SIGINT after the current commit, and the next seal continues", () =>
  withFolder(async (folder) => {
    const isInTime = ({ stderr }: CliExit) => stderr.endsWith(STOPPED);
    const { dir, exit } = await interrupted(folder, ["SIGINT"], isInTime);
    assert.deepEqual([exit.code, exit.signal, exit.stdout], [0, null, ""]);
    const first = sealedEvents(exit.stderr);
    assert.ok(first % COMMIT_EVENTS === 0 && first < EVENTS, exit.stderr);
    assert.equal(await verifiedEvents(dir), EVENTS);

    const next = await runCli(["seal", "--config", join(dir, "service.toml")]);
    assert.equal(next.code, 0, next.stderr);
    assert.equal(sealedEvents(next.stderr), EVENTS - first);
    assert.equal(await verifiedEvents(dir), EVENTS);
    assert.deepEqual(await readdir(join(dir, "data", "log", "pending")), []);
  }));

test("seal exits 1 immediately on a second signal, and the next seal continues", () =>
  withFolder(async (folder) => {
    const isInTime = ({ code }: CliExit) => code === 1;
    const { dir, exit } = await interrupted(folder, ["SIGTERM", "SIGINT"], isInTime);
    assert.match(exit.stderr, /^second signal \(SIG(INT|TERM)\): exiting immediately\n$/);
    const next = await runCli(["seal", "--config", join(dir, "service.toml")]);
    assert.equal(next.code, 0, next.stderr);
    assert.equal(await verifiedEvents(dir), EVENTS);
  }));

test("seal stopped before it begins seals nothing and exits 0", () =>
  withFolder(async (dir) => {
    await fillDeployment(dir, 1);
    const exit = await runSignalled("SIGTERM", "seal", dir);
    assert.deepEqual([exit.code, exit.stdout, exit.stderr], [0, "", STOPPED]);
    assert.deepEqual(await readdir(join(dir, "data", "log", "pending")), []);
    const next = await runCli(["seal", "--config", join(dir, "service.toml")]);
    assert.equal(sealedEvents(next.stderr), COMMIT_EVENTS);
  }));

test("verify stopped by a signal exits 1 and prints no report", () =>
  withFolder(async (dir) => {
    await fillDeployment(dir, COMMITS);
    for (const signal of ["SIGINT", "SIGTERM"]) {
      const { code, stdout, stderr } = await runSignalled(signal, "verify", dir);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.equal(
        stderr,
        "interrupted by a signal before verification finished; run verify again\n",
      );
    }
  }));

test("init completes after a first signal, and exits 1 immediately on a second one", () =>
  withFolder(async (folder) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      const dir = join(folder, signal);
      const exit = await runSignalled(signal, "init", dir);
      assert.deepEqual([exit.code, exit.stdout, exit.stderr], [0, "", ""]);
      const again = await runCli(["init", dir]);
      assert.equal(again.stderr, `already initialized ${dir}\n`);
    }
    const dir = join(folder, "twice");
    assert.equal((await runSignalled("SIGINT,SIGTERM", "init", dir)).code, 1);
    const again = await runCli(["init", dir]);
    assert.equal(again.code, 0, again.stderr);
  }));
