/** The self-test on real directories: healthy, in-memory and read-only ones. */
import assert from "node:assert/strict";
import { chmodSync, existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { type Disturbance, DISTURBANCES } from "../../tools/soak/disturbances.ts";
import { selfTest } from "../../tools/selftest/self_test.ts";
import { OWN_CHECKOUT, spawnScript, withFolder } from "../../tools/support/program.ts";
import { loseTail } from "../support/lost_tail.ts";
import { SEED } from "../../tools/support/random.ts";

const MEMORY_FOLDER = "/dev/shm";

/** The verdict on a directory after a few faults. */
function judge(dir: string, deck: Disturbance[]) {
  const { signal } = new AbortController();
  return selfTest({ dir, seed: SEED, deck, report: () => {}, signal });
}

test(`selfTest() trusts a sound directory and leaves it unchanged (SEED=${SEED})`, () =>
  withFolder(async (dir) => {
    await writeFile(join(dir, "mine"), "");
    const { isTrusted, reason } = await judge(dir, [DISTURBANCES.kill]);
    assert.ok(isTrusted, reason);
    assert.match(
      reason,
      /fdatasync p50 [\d.]+ ms, p99 [\d.]+ ms.*, no batch lost \(kills: 1, batches: \d+\)$/,
    );
    assert.deepEqual(await readdir(dir), ["mine"]);
  }));

test(`selfTest() does not trust a directory that loses synced data (SEED=${SEED})`, () =>
  withFolder(async (dir) => {
    const { isTrusted, reason } = await judge(dir, [(scene) => loseTail(scene, 0)]);
    assert.ok(!isTrusted);
    assert.match(
      reason,
      /^[^\n]*; check the kernel log for disk errors, and choose a different disk$/,
    );
    assert.deepEqual(await readdir(dir), []);
  }));

test("selfTest() does not trust a directory that is not writable", {
  skip: process.getuid?.() === 0 ? "root can write anywhere" : false,
}, () =>
  withFolder(async (folder) => {
    const dir = join(folder, "closed");
    await mkdir(dir);
    chmodSync(dir, 0o500);
    const { isTrusted, reason } = await judge(dir, []);
    assert.ok(!isTrusted);
    assert.match(reason, /EACCES.*; use a directory/);
  }));

test("tools/selftest.ts does not trust an in-memory directory, and exits 1", {
  skip: existsSync(MEMORY_FOLDER) ? false : `${MEMORY_FOLDER} does not exist`,
}, async () => {
  const tool = join(OWN_CHECKOUT, "tools/selftest.ts");
  const options = { permissions: ["--allow-all"] };
  const { code, stdout } = await spawnScript(tool, [MEMORY_FOLDER], options).exited;
  assert.equal(code, 1);
  assert.match(stdout, /^\/dev\/shm cannot be trusted with a log: tmpfs: it is in memory.*\n$/);
});
