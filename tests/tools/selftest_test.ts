/** The self-test on real folders: one that is fit, one in memory, one that cannot be written. */
import assert from "node:assert/strict";
import { chmodSync, existsSync } from "node:fs";
import { mkdir, readdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { TAIL_FILE } from "../../src/log/layout.ts";
import { WRITERS } from "../../tools/soak/bounds.ts";
import { type Disturbance, DISTURBANCES, type Scene } from "../../tools/soak/disturbances.ts";
import { selfTest } from "../../tools/selftest/self_test.ts";
import { spawnScript, withFolder } from "../support/cli.ts";
import { testSeed } from "../support/random.ts";

const SELFTEST = fileURLToPath(new URL("../../tools/selftest.ts", import.meta.url));
const MEMORY_FOLDER = "/dev/shm";
const POLL_MS = 5;
/** More than all writers together wait for at any moment. */
const LOST_COMMITS_MIN = 4 * WRITERS;

const seed = testSeed();

/** The verdict on a folder after a few disturbances. */
function judge(dir: string, deck: Disturbance[]) {
  return selfTest({ dir, seed, deck, report: () => {}, signal: new AbortController().signal });
}

function commitsIn(tail: string): number {
  return tail.split("\n").filter((line) => line.startsWith('{"commit":')).length;
}

function runTool(args: string[]) {
  return spawnScript(SELFTEST, args, { permissions: ["--allow-all"] }).exited;
}

test(`selfTest() trusts a sound folder and leaves it as it was (SEED=${seed})`, () =>
  withFolder(async (dir) => {
    await writeFile(join(dir, "mine"), "");
    const { isTrusted, reason } = await judge(dir, [DISTURBANCES.kill]);
    assert.ok(isTrusted, reason);
    assert.match(
      reason,
      /fdatasync p50 [\d.]+ ms, p99 [\d.]+ ms.*, 1 kills lost none of \d+ batches$/,
    );
    assert.deepEqual(await readdir(dir), ["mine"]);
  }));

test(`selfTest() does not trust a folder that loses what was synced (SEED=${seed})`, () =>
  withFolder(async (dir) => {
    const lose = async ({ served, tally }: Scene) => {
      // A tail that was rotated just now has little that anybody was told of.
      for (let isLost = false; !isLost;) {
        const due = tally.of("batches") + LOST_COMMITS_MIN;
        while (tally.of("batches") < due) await delay(POLL_MS);
        await served.kill();
        const tail = join(served.logDir, TAIL_FILE);
        isLost = commitsIn(await readFile(tail, "latin1")) >= LOST_COMMITS_MIN;
        if (isLost) await truncate(tail, 0);
        await served.start();
      }
    };
    const { isTrusted, reason } = await judge(dir, [lose]);
    assert.ok(!isTrusted);
    assert.match(reason, /^[^\n]*; look into the disk's own log, and choose another disk$/);
    assert.deepEqual(await readdir(dir), []);
  }));

const isRoot = process.getuid?.() === 0;

test("selfTest() does not trust a folder that cannot be written", {
  skip: isRoot ? "root writes everywhere" : false,
}, () =>
  withFolder(async (folder) => {
    const dir = join(folder, "closed");
    await mkdir(dir);
    chmodSync(dir, 0o500);
    const { isTrusted, reason } = await judge(dir, []);
    assert.ok(!isTrusted);
    assert.match(reason, /EACCES.*; give this user a folder/);
  }));

test("tools/selftest.ts does not trust a folder in memory, and exits 1", {
  skip: existsSync(MEMORY_FOLDER) ? false : `no ${MEMORY_FOLDER}`,
}, async () => {
  const { code, stdout } = await runTool([MEMORY_FOLDER]);
  assert.equal(code, 1);
  assert.match(stdout, /^\/dev\/shm cannot be trusted with a log: tmpfs: it is in memory.*\n$/);
});

const FILE = fileURLToPath(import.meta.url);
const REFUSED = {
  "no folder": [],
  "a missing one": ["/nowhere"],
  "two": ["/", "/"],
  "a file": [FILE],
};

for (const [name, args] of Object.entries(REFUSED)) {
  test(`tools/selftest.ts refuses ${name} with exit 2`, async () => {
    const { code, stdout, stderr } = await runTool(args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /^usage: selftest DIR/);
  });
}
