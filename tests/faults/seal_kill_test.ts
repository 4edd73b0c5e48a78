/**
 * The real `seal`, killed at random moments of its work, also on what earlier kills have left: the
 * next `seal` or `serve` goes on, and every event is there once, as it was. A kill counts when the
 * run that it ended has changed the folder and has left work. SEAL_KILLS says how many.
 */
import assert from "node:assert/strict";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DISTURBANCES, type Scene } from "../../tools/soak/disturbances.ts";
import type { ServedLog } from "../../tools/soak/served_log.ts";
import { type CliExit, isRunning, signalChild } from "../../tools/support/program.ts";
import { randomItem, SEED } from "../../tools/support/random.ts";
import { soakThrough, tellOfLongRun } from "./support/soaked.ts";

const KILLS = Number(process.env.SEAL_KILLS ?? 4);
/** Kills that may come too early or too late, for each that counts. */
const MISSES_MAX = 20;
/** By what the time is multiplied in which a kill is to come, after one that came too late. */
const QUICKER_AFTER_MISS = 0.9;
const WORK_MS_FIRST = 300;
const POLL_MS = 1;
/** What is appended before each sealing, so that it takes a moment. */
const BATCHES_BETWEEN = 60;
/** Steps that are over in a moment: a kill waits until it sees one. */
const SHORT_STEPS = ["no tail", "unlisted segment", "manifest aside", "covered pending"];

/** Names, sizes and times of all files: what a run that has begun its work has changed. */
async function stateOf({ logDir }: ServedLog): Promise<string> {
  const names = (await readdir(logDir, { recursive: true })).sort();
  const states = names.map(async (name) => {
    const entry = await lstat(join(logDir, name), { bigint: true }).catch(() => null);
    return `${name} ${entry?.ino} ${entry?.size} ${entry?.mtimeNs}`;
  });
  return (await Promise.all(states)).join("\n");
}

/** What a sealing that was cut off has left, in a word or two. */
async function leftBehind({ logDir }: ServedLog): Promise<string> {
  const list = (folder: string): Promise<string[]> => readdir(join(logDir, folder)).catch(() => []);
  const [root, pending, segments] = await Promise.all([".", "pending", "segments"].map(list));
  const manifest = await readFile(join(logDir, "manifest.json"), "utf8");
  const isUnlisted = (name: string) => name.endsWith(".parquet") && !manifest.includes(name);
  const last = JSON.parse(manifest).segments.at(-1)?.last_event_id ?? "";
  return [
    root!.includes("tail.ndjson") ? "" : "no tail",
    root!.includes("manifest.json.tmp") ? "manifest aside" : "",
    pending!.some((name) => name.slice(37, 73) <= last) ? "covered pending" : "",
    pending!.some((name) => name.slice(37, 73) > last) ? "pending" : "",
    segments!.includes("new.parquet.tmp") ? "segment aside" : "",
    segments!.some(isUnlisted) ? "unlisted segment" : "",
  ].filter((word) => word !== "").join(", ") || "nothing";
}

/** Where earlier runs have left only what is to be cleaned up, there is nothing to seal. */
function assertEnded({ code, stderr }: CliExit): void {
  assert.ok(code === 0 || code === 1 && /nothing to seal\n$/.test(stderr), stderr);
}

/**
 * Kills a sealing some time into its work, or when a short step of it is seen.
 * @returns what it left; null when it was over, or had left nothing to do.
 */
async function killSeal(served: ServedLog, moment: number | string): Promise<string | null> {
  const before = await stateOf(served);
  const sealing = served.spawn(["seal"]);
  while (isRunning(sealing) && await stateOf(served) === before) await delay(POLL_MS);
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

/** `verify` finds nothing wrong with what is there. */
async function verify(served: ServedLog): Promise<{ orphans: string[]; remnants: string[] }> {
  const { code, stdout, stderr } = await served.run(["verify", "--chain"]);
  assert.equal(code, 0, stdout + stderr);
  return JSON.parse(stdout);
}

test(`seal loses and duplicates nothing through ${KILLS} kills (SEED=${SEED})`, async () => {
  const struck: Record<string, number> = {};
  let workMs = WORK_MS_FIRST;
  let [kills, misses] = [0, 0];
  const killOften = async (scene: Scene) => {
    const { served, random, tally, failing } = scene;
    while (kills < KILLS) {
      const due = tally.of("batches") + BATCHES_BETWEEN;
      while (tally.of("batches") < due) await delay(POLL_MS, undefined, { signal: failing });
      await served.stop();
      // Several on top of each other, until there is nothing left to kill.
      for (let isOver = false; !isOver && kills < KILLS;) {
        const moment = random() < 0.5 ? random() * workMs : randomItem(random, SHORT_STEPS);
        const left = await killSeal(served, moment);
        isOver = left === null || random() < 0.5;
        if (left === null) {
          assert.ok(++misses <= KILLS * MISSES_MAX, "kills do not come in time");
          // It may have been measured while the machine was busy.
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
