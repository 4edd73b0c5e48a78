import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { lstat, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { lockFile, lockHolder } from "../../src/runtime/file_lock.ts";
import { withFolder } from "../../tools/support/program.ts";
import {
  absenceOf,
  executableOf,
  runtimeArgs,
  type RuntimeName,
  THIS_RUNTIME,
} from "../../tools/support/runtimes.ts";

const HOLD_LOCK = fileURLToPath(new URL("../support/hold_lock.ts", import.meta.url));

/** Starts a child process that tries to acquire the lock. `answer` is `locked` or `held`. */
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

const PAIRS: [RuntimeName, RuntimeName][] = [
  ["deno", "deno"],
  ["deno", "node"],
  ["node", "deno"],
  ["node", "node"],
];

for (const [holder, other] of PAIRS) {
  const absent = [holder, other].find((name) => executableOf(name) === null);
  const skip = absent === undefined ? false : absenceOf(absent);
  test(`a lock held under ${holder} is refused to ${other} and released by kill -9`, {
    skip,
  }, () =>
    withFolder(async (folder) => {
      const path = join(folder, ".lock");
      const first = await tryInChild(holder, path);
      assert.equal(first.answer, "locked");
      const second = await tryInChild(other, path);
      assert.equal(second.answer, "held");
      await end(second.child);
      if (process.platform === "linux") assert.equal(lockHolder(path), first.child.pid);

      const killed = once(first.child, "close");
      first.child.kill("SIGKILL");
      await killed;
      const third = await tryInChild(other, path);
      assert.equal(third.answer, "locked");
      assert.notEqual(lockHolder(path), first.child.pid);
      await end(third.child);
    }));
}

test("lockFile() excludes a second call in the same process until it is released", () =>
  withFolder(async (folder) => {
    const path = join(folder, ".lock");
    const release = await lockFile(path);
    assert.ok(release);
    assert.equal(await lockFile(path), null);
    release();
    (await lockFile(path))!();
  }));

test("lockFile() creates the file for its owner only, and never deletes or truncates it", () =>
  withFolder(async (folder) => {
    const path = join(folder, ".lock");
    (await lockFile(path))!();
    assert.equal((await lstat(path)).mode & 0o777, 0o600);
    await writeFile(path, "kept");
    (await lockFile(path))!();
    assert.equal(await readFile(path, "utf8"), "kept");
  }));

test("lockFile() refuses a symlink and does not create its target", () =>
  withFolder(async (folder) => {
    const [target, link] = [join(folder, "target"), join(folder, "link")];
    await symlink(target, link);
    await assert.rejects(lockFile(link));
    await assert.rejects(lstat(target), { code: "ENOENT" });
    await writeFile(target, "");
    await assert.rejects(lockFile(link));
  }));

test("lockFile() refuses a symlink under restricted permissions, too", () =>
  withFolder(async (folder) => {
    const [target, link] = [join(folder, "target"), join(folder, "link")];
    await writeFile(target, "");
    await symlink(target, link);
    const args = [...runtimeArgs(THIS_RUNTIME, ["--allow-read", "--allow-write"]), HOLD_LOCK, link];
    const child = spawn(executableOf(THIS_RUNTIME)!, args, { stdio: "ignore" });
    const [code] = await once(child, "close");
    assert.equal(code, 1);
  }));

test("lockFile() refuses a directory and a missing parent", () =>
  withFolder(async (folder) => {
    await assert.rejects(lockFile(folder));
    await assert.rejects(lockFile(join(folder, "none", ".lock")));
  }));
