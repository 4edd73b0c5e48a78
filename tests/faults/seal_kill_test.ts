/**
 * The real `seal` is killed at random moments, even when it resumes an earlier killed run. The next
 * `seal` or `serve` completes the work, and every event exists once, unchanged. A kill counts if
 * the run had changed the directory but had not finished. SEAL_KILLS sets the number of kills.
 */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DISTURBANCES, type Scene } from "../../tools/soak/disturbances.ts";
import type { ServedLog } from "../../tools/soak/served_log.ts";
import { type CliExit, isRunning, signalChild } from "../../tools/support/program.ts";
import { randomItem, SEED } from "../../tools/support/random.ts";
import { untilBatches } from "../support/scenes.ts";
import { soakThrough, tellOfLongRun } from "./support/soaked.ts";

const KILLS = Number(process.env.SEAL_KILLS ?? 2);
/** Maximum number of kills that come too early or too late, for each kill that counts. */
const MISSES_MAX = 20;
/** Factor by which the maximum delay is shortened after a kill came too late. */
const QUICKER_AFTER_MISS = 0.9;
const WORK_MS_FIRST = 300;
const POLL_MS = 1;
/** Number of batches appended before each seal, so that the seal takes long enough to be killed. */
const BATCHES_BETWEEN = 60;
/** Steps so short that the test must poll for them to kill the seal in time. */
const SHORT_STEPS = ["no tail", "unlisted segment", "temporary manifest", "covered pending"];

/** Short labels for the files that an interrupted seal has left behind. */
async function leftBehind({ logDir }: ServedLog): Promise<string> {
  const list = (folder: string): Promise<string[]> => readdir(join(logDir, folder)).catch(() => []);
  const [root, pending, segments] = await Promise.all([".", "pending", "segments"].map(list));
  const manifest = await readFile(join(logDir, "manifest.json"), "utf8");
  const isUnlisted = (name: string) => name.endsWith(".parquet") && !manifest.includes(name);
  const last = JSON.parse(manifest).segments.at(-1)?.last_event_id ?? "";
  return [
    root!.includes("tail.ndjson") ? "" : "no tail",
    root!.includes("manifest.json.tmp") ? "temporary manifest" : "",
    pending!.some((name) => name.slice(37, 73) <= last) ? "covered pending" : "",
    pending!.some((name) => name.slice(37, 73) > last) ? "pending" : "",
    segments!.includes("new.parquet.tmp") ? "temporary segment" : "",
    segments!.some(isUnlisted) ? "unlisted segment" : "",
  ].filter((word) => word !== "").join(", ") || "nothing";
}

/** Asserts that a seal succeeded or had nothing to seal. Earlier runs may leave only cleanup. */
function assertEnded({ code, stderr }: CliExit): void {
  assert.ok(code === 0 || code === 1 && /nothing to seal\n$/.test(stderr), stderr);
}

/**
 * Kills a seal after a given number of milliseconds, or during a given short step.
 * @returns labels for the files left behind; null if the seal had finished or had nothing to do.
 */
async function killSeal(served: ServedLog, moment: number | string): Promise<string | null> {
  const before = await leftBehind(served);
  const sealing = served.spawn(["seal"]);
  while (isRunning(sealing) && await leftBehind(served) === before) await delay(POLL_MS);
  const beganMs = performance.now();
  const hasCome = async () =>
    typeof moment === "number"
      ? performance.now() - beganMs >= moment
      : (await leftBehind(served)).includes(moment);
  while (isRunning(sealing) && !await hasCome()) await delay(0);
  signalChild(sealing.child, "SIGKILL");
  const exit = await sealing.exited;
  if (exit.signal !== "SIGKILL") assertEnded(exit);
  const left = await leftBehind(served);
  return exit.signal !== "SIGKILL" || left === "nothing" ? null : left;
}

/** Asserts that `verify` finds no violation. */
async function verify(served: ServedLog): Promise<{ orphans: string[]; remnants: string[] }> {
  const { code, stdout, stderr } = await served.run(["verify", "--chain"]);
  assert.equal(code, 0, stdout + stderr);
  return JSON.parse(stdout);
}

test(`seal neither loses nor duplicates events through ${KILLS} kills (SEED=${SEED})`, async () => {
  const struck: Record<string, number> = {};
  let workMs = WORK_MS_FIRST;
  let [kills, misses] = [0, 0];
  const killOften = async (scene: Scene) => {
    const { served, random, tally } = scene;
    while (kills < KILLS) {
      await untilBatches(scene, BATCHES_BETWEEN);
      await served.stop();
      // Kills several seals in a row, until there is nothing left to seal.
      for (let isOver = false; !isOver && kills < KILLS;) {
        const moment = random() < 0.5 ? random() * workMs : randomItem(random, SHORT_STEPS);
        const left = await killSeal(served, moment);
        isOver = left === null || random() < 0.5;
        if (left === null) {
          assert.ok(++misses <= KILLS * MISSES_MAX, "too many kills missed the seal");
          // A busy machine may have made the first measurement too long.
          if (typeof moment === "number") workMs *= QUICKER_AFTER_MISS;
        } else {
          kills += 1;
          tally.add("kills");
          struck[left] = (struck[left] ?? 0) + 1;
          await verify(served);
        }
      }
      if (random() < 0.5) {
        assertEnded(await served.run(["seal"]));
        assert.equal(await leftBehind(served), "nothing");
        const { orphans, remnants } = await verify(served);
        assert.deepEqual([orphans, remnants], [[], []]);
      }
      await served.start();
    }
  };
  const result = await soakThrough([killOften, DISTURBANCES.seal]);
  tellOfLongRun("SEAL_KILLS", result, struck);
});
