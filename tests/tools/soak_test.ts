/** Short soaks: of a correct service, and of one that loses part of its log. */
import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Disturbance, Scene } from "../../tools/soak/disturbances.ts";
import { runSoak, SoakError, type SoakOptions } from "../../tools/soak/run.ts";
import { type CliExit, spawnScript, withFolder } from "../../tools/support/program.ts";
import { loseTail } from "../support/lost_tail.ts";
import { until } from "../support/scenes.ts";
import { testSeed } from "../../tools/support/random.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";

const SOAK = fileURLToPath(new URL("../../tools/soak.ts", import.meta.url));

function soak(dir: string, deck: Disturbance[], options: Partial<SoakOptions> = {}) {
  const { signal } = new AbortController();
  const runtimes = [THIS_RUNTIME];
  const fixed = { dir, seed, runtimes, deck, report: () => {}, signal, loadMsMax: 500 };
  return runSoak({ ...fixed, ...options });
}

function runTool(args: string[]): Promise<CliExit> {
  return spawnScript(SOAK, args, { permissions: ["--allow-all"] }).exited;
}

/** The error with which the soak fails. */
async function failureOf(soaking: Promise<unknown>): Promise<SoakError> {
  try {
    await soaking;
  } catch (error) {
    assert.ok(error instanceof SoakError, String(error));
    return error;
  }
  assert.fail("the soak found no violation");
}

/** Waits until every kind of client has received something. */
function untilBusy(scene: Scene): Promise<void> {
  const { tally } = scene;
  const isBusy = () =>
    tally.of("batches") > 20 && tally.of("pages") > 0 && tally.of("followed") > 0;
  return until(scene, isBusy);
}

const seed = testSeed();

/** Messages for the violation. The audit, a writer, a reader or a follower may detect it first. */
const LOSSES = new RegExp([
  ...["is lost", "was (committed|retired) twice", "has two receipts"],
  ...["_conflict", "source_(retired|not_found)", "was reported as", "does not advance"],
  ...["was found \\d", "saw \\d", "(did not list|listed) ", "is no event in the log"],
].join("|"));

/** Size to which the tail is truncated: smaller than any commit, so that only a remnant is left. */
const KEPT_BYTES = 100;

test(`runSoak() detects lost acknowledged batches (SEED=${seed})`, () =>
  withFolder(async (dir) => {
    const lose = async (scene: Scene) => {
      await untilBusy(scene);
      await loseTail(scene, KEPT_BYTES);
    };
    const { message, dir: kept } = await failureOf(soak(dir, [lose]));
    assert.match(message, LOSSES);
    assert.ok((await stat(join(kept, "service.toml"))).isFile(), "the log is preserved");
  }));

test(`tools/soak.ts reports success on one line and exits 0 (SEED=${seed})`, () =>
  withFolder(async (dir) => {
    const args = ["--minutes", "0.02", "--seed", String(seed), "--dir", dir];
    const { code, stdout, stderr } = await runTool(args);
    assert.equal(code, 0, stderr + stdout);
    assert.match(stdout, /^soak passed: [^\n]* batches, [^\n]*\n$/);
    assert.deepEqual(await readdir(dir), []);
  }));
