/**
 * Probes the file system features that the log needs, with the log's own calls. Each probe works in
 * its own directory and throws a `ProbeError` that names the missing guarantee.
 */
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { errorCode, type Storage } from "../../src/log/storage/storage.ts";
import { lockFile } from "../../src/runtime/file_lock.ts";
import { runtimeArgs, THIS_RUNTIME } from "../support/runtimes.ts";

const TRY_LOCK = fileURLToPath(new URL("./try_lock.ts", import.meta.url));

const RENAMES = 200;
const RENAMED_BYTES = 64 * 1024;

/** The file system does not meet a requirement of the log. */
export class ProbeError extends Error {
  override name = "ProbeError";
}

function need(holds: boolean, message: string): void {
  if (!holds) throw new ProbeError(message);
}

/** Checks that files are created exclusively, written at offsets, read back and truncated. */
export async function probeWrites(storage: Storage): Promise<void> {
  const first = Buffer.alloc(5000, "a");
  const second = Buffer.alloc(300, "b");
  const both = Buffer.concat([first, second]);
  const file = await storage.open("written", "create");
  const holds = async (content: Buffer) => (await contentOf(storage, "written")).equals(content);
  try {
    await file.write(first, 0);
    await file.write(second, first.length);
    await file.sync();
    need(await holds(both), "written data is not read back correctly");
    await file.truncate(first.length);
    await file.sync();
    need(await holds(first), "a truncated file does not have its new size");
    await file.write(second, first.length);
    need(await holds(both), "a truncated file cannot be extended");
  } finally {
    await file.close();
  }
  const again = await storage.open("written", "create").catch((error) => {
    if (errorCode(error) === "EEXIST") return null;
    throw error;
  });
  await again?.close();
  need(again === null, "an existing file can be created again (O_EXCL does not work)");
}

/**
 * Checks that a file is replaced atomically, so that readers always see one complete version.
 * @param folder path of the storage, for an independent reader.
 */
export async function probeRename(folder: string, storage: Storage): Promise<void> {
  await makeFile(storage, "current", "0");
  let isDone = false;
  const renaming = renameOften(storage).finally(() => isDone = true);
  const [fault] = await Promise.all([
    readMeanwhile(join(folder, "current"), () => isDone),
    renaming,
  ]);
  need(fault === null, `while one file replaces another, ${fault}`);
  await storage.syncFolder(".");
}

async function renameOften(storage: Storage): Promise<void> {
  for (let number = 1; number <= RENAMES; number++) {
    await makeFile(storage, "next", String(number % 10));
    await storage.rename("next", "current");
  }
}

/** @returns the first fault that a reader encountered; null if there was none. */
async function readMeanwhile(path: string, isDone: () => boolean): Promise<string | null> {
  while (!isDone()) {
    try {
      const content = await readFile(path);
      const isWhole = content.length === RENAMED_BYTES &&
        content.every((byte) => byte === content[0]);
      if (!isWhole) return "readers see neither version complete";
    } catch (error) {
      return `readers see neither version: ${(error as Error).message}`;
    }
  }
  return null;
}

async function makeFile(storage: Storage, path: string, fill: string): Promise<void> {
  const file = await storage.open(path, "create");
  try {
    await file.write(Buffer.alloc(RENAMED_BYTES, fill), 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function contentOf(storage: Storage, path: string): Promise<Buffer> {
  const file = await storage.open(path, "read");
  try {
    const bytes = Buffer.alloc(await file.size());
    return bytes.subarray(0, await file.read(bytes, 0));
  } finally {
    await file.close();
  }
}

/** Checks that a held lock excludes other processes, and that a released lock does not. */
export async function probeLock(folder: string): Promise<void> {
  const path = join(folder, "lock");
  const release = await lockFile(path);
  if (release === null) throw new ProbeError("a free lock cannot be acquired");
  try {
    need(tryElsewhere(path) === "held", "a lock (flock) does not exclude a second process");
  } finally {
    release();
  }
  need(tryElsewhere(path) === "free", "a lock (flock) is still held after its release");
}

/** Returns the outcome of a lock attempt in another process. */
function tryElsewhere(path: string): string {
  const args = [...runtimeArgs(THIS_RUNTIME, ["--allow-all"]), TRY_LOCK, path];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) {
    throw new ProbeError(`a second process could not test the lock: ${stderr.trim()}`);
  }
  return stdout;
}
