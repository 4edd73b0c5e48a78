import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { lockFile } from "../../src/runtime/file_lock.ts";
import { withFolder } from "../../tools/support/program.ts";
import {
  absenceOf,
  executableOf,
  runtimeArgs,
  type RuntimeName,
  THIS_RUNTIME,
} from "../../tools/support/runtimes.ts";

const HOLD_LOCK = fileURLToPath(new URL("../support/hold_lock.ts", import.meta.url));

/** A child that tries to take the lock; `answer` is `locked` or `held`. */
async function tryInChild(
  runtime: RuntimeName,
  path: string,
): Promise<{ child: ChildProcess; answer: string }> {
  const args = [...runtimeArgs(runtime, ["--allow-read", "--allow-write"]), HOLD_LOCK, path];
  const child = spawn(executableOf(runtime)!, args, { stdio: ["pipe", "pipe", "inherit"] });
  const [answer] = await once(child.stdout!.setEncoding("utf8"), "data");
  return { child, answer };
}

async function end(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  child.stdin!.end();
  await closed;
}

const inFolder = (use: (folder: string) => void) =>
  withFolder((folder) => Promise.resolve(use(folder)));

const PAIRS: [RuntimeName, RuntimeName][] = [
  ["deno", "deno"],
  ["deno", "node"],
  ["node", "deno"],
  ["node", "node"],
];

for (const [holder, other] of PAIRS) {
  const absent = [holder, other].find((name) => executableOf(name) === null);
  const skip = absent === undefined ? false : absenceOf(absent);
  test(`lockFile() held under ${holder} is refused to ${other}, and free after kill -9`, {
    skip,
  }, () =>
    withFolder(async (folder) => {
      const path = join(folder, ".lock");
      const first = await tryInChild(holder, path);
      assert.equal(first.answer, "locked");
      const second = await tryInChild(other, path);
      assert.equal(second.answer, "held");
      await end(second.child);

      const killed = once(first.child, "close");
      first.child.kill("SIGKILL");
      await killed;
      const third = await tryInChild(other, path);
      assert.equal(third.answer, "locked");
      await end(third.child);
    }));
}

test("lockFile() excludes a second call in the same process until it is released", () =>
  inFolder((folder) => {
    const path = join(folder, ".lock");
    const release = lockFile(path);
    assert.ok(release);
    assert.equal(lockFile(path), null);
    release();
    lockFile(path)!();
  }));

test("lockFile() creates the file for its owner alone, and never deletes or empties it", () =>
  inFolder((folder) => {
    const path = join(folder, ".lock");
    lockFile(path)!();
    assert.equal(lstatSync(path).mode & 0o777, 0o600);
    writeFileSync(path, "kept");
    lockFile(path)!();
    assert.equal(readFileSync(path, "utf8"), "kept");
  }));

test("lockFile() refuses a symlink and creates nothing behind it", () =>
  inFolder((folder) => {
    const [target, link] = [join(folder, "target"), join(folder, "link")];
    symlinkSync(target, link);
    assert.throws(() => lockFile(link));
    assert.throws(() => lstatSync(target), { code: "ENOENT" });
    writeFileSync(target, "");
    assert.throws(() => lockFile(link));
  }));

test("lockFile() under restricted permissions refuses a symlink too", () =>
  withFolder(async (folder) => {
    const [target, link] = [join(folder, "target"), join(folder, "link")];
    writeFileSync(target, "");
    symlinkSync(target, link);
    const args = [...runtimeArgs(THIS_RUNTIME, ["--allow-read", "--allow-write"]), HOLD_LOCK, link];
    const child = spawn(executableOf(THIS_RUNTIME)!, args, { stdio: "ignore" });
    const [code] = await once(child, "close");
    assert.equal(code, 1);
  }));

test("lockFile() refuses a folder and a missing parent", () =>
  inFolder((folder) => {
    assert.throws(() => lockFile(folder));
    assert.throws(() => lockFile(join(folder, "none", ".lock")));
  }));
