import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setImmediate } from "node:timers";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import {
  isNoRoom,
  isNotFound,
  readSmallFile,
  replaceFile,
  type Storage,
} from "../../../src/log/storage/storage.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { skipLoudly } from "../../faults/support/skip.ts";
import { openFiles } from "../../support/open_files.ts";

function withStorage(use: (storage: Storage, folder: string) => Promise<void>): Promise<void> {
  return withFolder((folder) => use(fileStorage(folder), folder));
}

async function writeNew(storage: Storage, path: string, text: string): Promise<void> {
  const file = await storage.open(path, "create");
  await file.write(Buffer.from(text), 0);
  await file.close();
}

async function readText(storage: Storage, path: string): Promise<string> {
  return Buffer.from(await readSmallFile(storage, path, 1000)).toString();
}

for (const mode of ["pooled", "blocking"] as const) {
  test(`fileStorage() writes, reads, syncs and truncates a file, ${mode}`, async () => {
    await withStorage(async (storage, folder) => {
      const file = await storage.open("f", "create");
      await file.write(Buffer.from("hello world"), 0, mode);
      await file.write(Buffer.from("W"), 6, mode);
      await file.sync(mode);
      const into = Buffer.alloc(8);
      assert.equal(await file.read(into, 0, mode), 8);
      assert.equal(into.toString(), "hello Wo");
      assert.equal(await file.read(into, 6, mode), 5, "fewer at the end");
      assert.equal(await file.read(into, 100, mode), 0);
      await file.truncate(5);
      assert.equal(await file.size(), 5);
      await file.close();
      assert.equal(fs.readFileSync(join(folder, "f"), "utf8"), "hello");
      assert.equal(fs.statSync(join(folder, "f")).mode & 0o777, 0o600);
    });
  });
}

test("fileStorage() has a blocking sync done when the call returns", (t) =>
  withStorage(async (storage) => {
    const { mock } = t.mock.method(fs, "fdatasyncSync");
    const file = await storage.open("f", "create");
    const syncing = file.sync("blocking");
    assert.equal(mock.callCount(), 1);
    await syncing;
    await file.close();
  }));

test("fileStorage() has a blocking read done when the call returns, unless another is queued", () =>
  withStorage(async (storage) => {
    await writeNew(storage, "f", "text");
    const file = await storage.open("f", "read");
    const [first, second] = [Buffer.alloc(4), Buffer.alloc(4)];
    assert.equal(file.read(first, 0, "blocking"), 4);
    assert.equal(first.toString(), "text");
    const reads = [file.read(first, 1), file.read(second, 2, "blocking")];
    assert.ok(reads[1] instanceof Promise, "two positional reads of a descriptor could mix");
    assert.deepEqual(await Promise.all(reads), [3, 2]);
    assert.equal(first.toString("utf8", 0, 3) + second.toString("utf8", 0, 2), "extxt");
    assert.equal(file.read(second, 0, "blocking"), 4);
    await file.close();
  }));

test("fileStorage() opens a file for reading or writing, or creates it", async () => {
  await withStorage(async (storage, folder) => {
    for (const mode of ["read", "write"] as const) {
      await assert.rejects(storage.open("f", mode), isNotFound);
    }
    await writeNew(storage, "f", "text");
    await assert.rejects(storage.open("f", "create"), /EEXIST/);
    const reader = await storage.open("f", "read");
    await assert.rejects(reader.write(Buffer.from("x"), 0), ({ message }: Error) => {
      return message.startsWith(`${join(folder, "f")}: `);
    });
    await reader.close();
    const writer = await storage.open("f", "write");
    await writer.write(Buffer.from("x"), 0);
    await writer.close();
    assert.equal(await readText(storage, "f"), "xext");
  });
});

test("fileStorage() refuses to open a symlink, directory or pipe, and does not block on one", async () => {
  await withStorage(async (storage, folder) => {
    await writeNew(storage, "f", "text");
    fs.symlinkSync("f", join(folder, "link"));
    fs.symlinkSync("nowhere", join(folder, "dangling"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    await storage.makeFolder("folder");
    for (const path of ["link", "dangling", "pipe", "folder"]) {
      for (const mode of ["read", "write", "create"] as const) {
        await assert.rejects(storage.open(path, mode), `${mode} ${path}`);
      }
    }
    assert.deepEqual(await storage.list("."), ["dangling", "f", "folder", "link", "pipe"]);
  });
});

test("fileStorage() opens a file while another one is renamed over it", () =>
  withStorage(async (storage, folder) => {
    const path = join(folder, "replaced");
    fs.writeFileSync(path, "old");
    for (let time = 0; time < 100; time++) {
      fs.writeFileSync(join(folder, "new"), "new");
      const [file] = await Promise.all([
        storage.open("replaced", "read"),
        fs.promises.rename(join(folder, "new"), path),
      ]);
      await file.close();
    }
  }));

test("fileStorage() lists, renames and removes files", async () => {
  await withStorage(async (storage, folder) => {
    assert.equal(await storage.list("pending"), null);
    await storage.makeFolder("pending");
    assert.equal(fs.statSync(join(folder, "pending")).mode & 0o777, 0o700);
    assert.deepEqual(await storage.list("pending"), []);
    await assert.rejects(storage.makeFolder("pending"), /EEXIST/);
    await writeNew(storage, "b", "b");
    await writeNew(storage, "a", "a");
    await storage.rename("b", "pending/b");
    await storage.rename("a", "pending/b");
    await storage.syncFolder("pending");
    await storage.syncFolder(".");
    assert.deepEqual(await storage.list("."), ["pending"]);
    assert.equal(await readText(storage, "pending/b"), "a");
    await storage.remove("pending/b");
    assert.deepEqual(await storage.list("pending"), []);
    await assert.rejects(storage.remove("x"), isNotFound);
    await assert.rejects(storage.rename("x", "y"), isNotFound);
    await assert.rejects(storage.syncFolder("x"), isNotFound);
  });
});

test("fileStorage() reports that a write ran out of space", async () => {
  await withStorage(async (storage) => {
    const file = await storage.open("f", "create");
    const beyondAnyFile = Number.MAX_SAFE_INTEGER;
    await assert.rejects(file.write(Buffer.from("x"), beyondAnyFile), isNoRoom);
    await file.write(Buffer.from("x"), 0);
    assert.equal(await file.size(), 1);
    await file.close();
  });
});

test("isNoRoom() recognizes an error by its code, or by its number if it has no code", () => {
  const { EDQUOT, EFBIG, EIO, ENOSPC } = constants.errno;
  const withCode = (code: string, message = "") => Object.assign(new Error(message), { code });
  const unnamed = (code: string, errno: number) => Object.assign(withCode(code), { errno: -errno });
  const cases: [isNoRoom: boolean, errors: unknown[]][] = [
    [true, [EDQUOT, EFBIG, ENOSPC].map((errno) => new Error(`No room (os error ${errno})`))],
    [true, ["EDQUOT", "EFBIG", "ENOSPC"].map((code) => withCode(code))],
    // Regression: libuv has no name for EDQUOT, so an exhausted disk quota poisoned the writer.
    [true, [unnamed(`Unknown system error -${EDQUOT}`, EDQUOT), unnamed("UNKNOWN", EDQUOT)]],
    [false, [unnamed(`Unknown system error -${EIO}`, EIO), unnamed("UNKNOWN", EIO)]],
    [false, [withCode("EIO", `No room (os error ${ENOSPC})`)]],
    [false, [`(os error ${EIO})`, `os error ${ENOSPC}`, "no space"].map((text) => new Error(text))],
    [false, [{ code: "ENOSPC" }, undefined]],
  ];
  for (const [expected, errors] of cases) {
    for (const error of errors) assert.equal(isNoRoom(error), expected, String(error));
  }
});

test("readSmallFile() rejects a file over its limit", async () => {
  await withStorage(async (storage) => {
    await writeNew(storage, "f", "12345");
    assert.equal(Buffer.from(await readSmallFile(storage, "f", 5)).toString(), "12345");
    await assert.rejects(readSmallFile(storage, "f", 4), /5 bytes exceed the limit of 4/);
    await replaceFile(storage, "f", "f.tmp", Buffer.from("new"));
    assert.equal(await readText(storage, "f"), "new");
    assert.deepEqual(await storage.list("."), ["f"], "replaceFile() leaves no temporary file");
  });
});

type Call = (...parts: unknown[]) => void;

test("fileStorage() closes a file after its pending reads and rejects later operations", async (t) => {
  await withStorage(async (storage) => {
    await writeNew(storage, "first", "first");
    const first = await storage.open("first", "write");
    const system = fs as unknown as Record<"read" | "close", Call>;
    const { read, close } = system;
    t.after(() => Object.assign(system, { read, close }));
    const order: string[] = [];
    system.read = (...parts) =>
      setImmediate(() => {
        order.push("read");
        read(...parts);
      });
    system.close = (...parts) => {
      order.push("close");
      close(...parts);
    };
    const into = [Buffer.alloc(5), Buffer.alloc(5)];
    await Promise.all([...into.map((bytes) => first.read(bytes, 0)), first.close()]);
    assert.deepEqual(
      order,
      ["read", "read", "close", "close"],
      "one descriptor for reads, one for writes",
    );
    assert.deepEqual(into.map(String), ["first", "first"]);
    // This file reuses the descriptor of the first one.
    const second = await storage.open("first", "write");
    const calls = [
      () => first.read(Buffer.alloc(5), 0),
      () => first.write(Buffer.from("x"), 0),
      () => first.sync(),
      () => first.truncate(0),
      () => first.size(),
      () => first.close(),
    ];
    for (const call of calls) {
      await assert.rejects(async () => await call(), { name: "AssertionError" });
    }
    await second.close();
    assert.equal(await readText(storage, "first"), "first");
  });
});

/** The files and directories in `folder` that this process has open. */
function openPaths(folder: string): string[] {
  return openFiles(process.pid).filter((path) => path.startsWith(folder)).sort();
}

test("fileStorage() closes the directories that it synced, and can be used again", (context) =>
  withStorage(async (storage, folder) => {
    if (!fs.existsSync("/proc/self/fd")) {
      return skipLoudly(context, "/proc is not available to list a process's descriptors");
    }
    await storage.makeFolder("pending");
    for (let time = 0; time < 2; time++) {
      for (const path of [".", "pending", "pending"]) await storage.syncFolder(path);
      assert.deepEqual(openPaths(folder), [folder, join(folder, "pending")]);
      await storage.closeFolders();
      assert.deepEqual(openPaths(folder), []);
    }
  }));
