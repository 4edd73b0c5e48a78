/** The files of an open log on a real disk are moved, replaced or removed. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Log } from "../../../src/log/log.ts";
import { WriterPoisonedError } from "../../../src/log/storage/errors.ts";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { openEventLog } from "../../../src/service/event_log.ts";
import { treeOf } from "../../support/file_tree.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll } from "../../support/sealing.ts";
import { appendTo, openTestLog, testTime } from "../../support/test_log.ts";

/** A log with a segment, a pending file and a tail, in a directory that can be moved. */
function withOpenLog(
  use: (log: Log, folder: string, parent: string) => Promise<void>,
): Promise<void> {
  return withFolder(async (parent) => {
    const folder = join(parent, "log");
    await mkdir(folder);
    await writeFile(join(folder, ".lock"), "");
    const storage = fileStorage(folder);
    await appendTo(storage, "sealed");
    await sealAll(storage);
    await appendTo(storage, "pending");
    await rotateOnly(storage);
    const { log } = await openTestLog(storage);
    await log.append([preparedBatch("tail")]);
    assert.equal(await log.storage.findLoss(), null);
    await use(log, folder, parent);
    await log.close();
  });
}

/** Replaces a file by a copy with the same bytes. */
async function replace(path: string): Promise<void> {
  await cp(path, `${path}.copy`);
  await rename(`${path}.copy`, path);
}

const only = (folder: string) => join(folder, fs.readdirSync(folder)[0]!);

/** What happens to the directory `at` of a log, and the start of the path that is then missed. */
const TAKES: [what: string, missed: string, take: (at: string) => Promise<void>][] = [
  ["the lock is removed", ".lock", (at) => rm(join(at, ".lock"))],
  ["the lock is replaced", ".lock", (at) => replace(join(at, ".lock"))],
  ["the tail is removed", "tail.ndjson", (at) => rm(join(at, "tail.ndjson"))],
  ["the tail is replaced", "tail.ndjson", (at) => replace(join(at, "tail.ndjson"))],
  ["the manifest is removed", "manifest.json", (at) => rm(join(at, "manifest.json"))],
  ["a pending file is removed", "pending/", (at) => rm(only(join(at, "pending")))],
  ["the last segment is removed", "segments/", (at) => rm(only(join(at, "segments")))],
  ["pending/ is replaced by a copy", "pending", async (at) => {
    await rename(join(at, "pending"), join(at, "old"));
    await cp(join(at, "old"), join(at, "pending"), { recursive: true });
  }],
  ["segments/ is removed", "segments", (at) => rm(join(at, "segments"), { recursive: true })],
  ["the directory is removed", ".lock", (at) => rm(at, { recursive: true })],
  ["a file takes the place of the directory", ".lock", async (at) => {
    await rename(at, `${at}.old`);
    await writeFile(at, "");
  }],
];

for (const [what, missed, take] of TAKES) {
  test(`OwnedStorage.findLoss() tells that ${what}`, () =>
    withOpenLog(async (log, folder) => {
      await take(folder);
      const [path, reason] = (await log.storage.findLoss())!.split(": ");
      assert.ok(missed.endsWith("/") ? path!.startsWith(missed) : path === missed, path);
      assert.match(reason!, /^is no longer/);
      await assert.rejects(log.storage.assertOwned(), WriterPoisonedError);
      await assert.rejects(log.append([preparedBatch("more")]), WriterPoisonedError);
    }));
}

/** A commit after that extends the file to its former size. */
test("OwnedStorage.findLoss() tells that an older copy was written over the tail", () =>
  withOpenLog(async (log, folder) => {
    const tail = join(folder, "tail.ndjson");
    const older = fs.readFileSync(tail);
    await log.append([preparedBatch("newer")]);
    assert.equal(await log.storage.findLoss(), null);
    fs.writeFileSync(tail, older);
    await log.append([preparedBatch("behind a hole")]);
    assert.equal(await log.storage.findLoss(), "tail.ndjson: was overwritten");
    await assert.rejects(log.append([preparedBatch("more")]), WriterPoisonedError);
  }));

test("openLog() refuses a log whose tail is replaced during recovery", () =>
  withFolder(async (folder) => {
    const storage = fileStorage(folder);
    await appendTo(storage, "a");
    const { open } = storage;
    storage.open = (path, mode) =>
      open(path, mode).finally(() => path === "tail.ndjson" && replace(join(folder, path)));
    await assert.rejects(openTestLog(storage), { message: /^tail\.ndjson: is no longer the file/ });
  }));

/** Fails lstat(2). @returns a function that mends it. */
function failLstat(context: TestContext, code: string): () => void {
  const fail = () => Promise.reject(Object.assign(new Error(code), { code }));
  const { mock } = context.mock.method(fs.promises, "lstat", fail as never);
  return () => mock.restore();
}

test("OwnedStorage.findLoss() tells why it cannot examine a file", (context) =>
  withOpenLog(async (log) => {
    const mend = failLstat(context, "EIO");
    assert.equal(await log.storage.findLoss(), ".lock: EIO");
    mend();
  }));

test("a check that lacks memory acknowledges nothing, and is repeated", (context) =>
  withFolder(async (folder) => {
    const storage = fileStorage(folder);
    const service = await openEventLog({ ...testTime(), storage, report() {} });
    const mend = failLstat(context, "ENOMEM");
    await assert.rejects(service.findLoss(), { message: ".lock: cannot be examined: ENOMEM" });
    passTime(context, 1000);
    await assert.rejects(service.append(preparedBatch("a")), { code: "writer_poisoned" });
    mend();
    assert.equal(await service.findLoss(), null);
    assert.equal((await service.append(preparedBatch("a"))).status, "committed");
    await service.close();
  }));

test("OwnedStorage.findLoss() looks at one segment after another", () =>
  withOpenLog(async (log, folder) => {
    await log.seal(() => {});
    const { path } = log.files.sealed.files.at(-1)!;
    await rename(join(folder, path), join(folder, "taken"));
    const looks = [];
    for (const _ of log.files.sealed.files) looks.push(await log.storage.findLoss());
    assert.ok(looks.includes(`${path}: is missing`), `${looks}`);
  }));

test("OwnedStorage.findLoss() finds nothing while the log itself moves its files", () =>
  withOpenLog(async (log) => {
    let isOver = false;
    const looking = (async () => {
      let looks = 0;
      for (; !isOver || looks < 10; looks++) assert.equal(await log.storage.findLoss(), null);
    })();
    for (let number = 0; number < 20; number++) {
      await log.seal(() => {});
      await log.append([preparedBatch(`${number}`)]);
    }
    isOver = true;
    await looking;
  }));

test("a log whose directory was replaced changes no name in the replacement", () =>
  withOpenLog(async (log, folder, parent) => {
    await cp(folder, join(parent, "copy"), { recursive: true });
    await rename(folder, join(parent, "away"));
    await rename(join(parent, "copy"), folder);
    const before = await treeOf(folder);
    await assert.rejects(log.seal(() => {}), /is no longer the file/);
    assert.deepEqual(await treeOf(folder), before);
  }));

/** Lets time pass for everything that measures it with `performance.now()`. */
function passTime(context: TestContext, ms: number): void {
  const now = performance.now.bind(performance);
  performance.now = () => now() + ms;
  context.after(() => void (performance.now = now));
}

test("append() and retire() acknowledge nothing after a rest if the tail is gone", (context) =>
  withFolder(async (folder) => {
    const storage = fileStorage(folder);
    const service = await openEventLog({ ...testTime(), storage, report() {} });
    const batch = preparedBatch("a");
    await service.append(batch);
    await rename(join(folder, "tail.ndjson"), join(folder, "taken"));
    const sizeBytes = fs.statSync(join(folder, "taken")).size;
    passTime(context, 1000);
    const refused = { code: "writer_poisoned" };
    await assert.rejects(service.append(preparedBatch("a")), refused, "a duplicate");
    await assert.rejects(service.append(preparedBatch("b")), refused);
    await assert.rejects(service.retire(batch.source), refused);
    await service.close();
    assert.equal(fs.statSync(join(folder, "taken")).size, sizeBytes, "nothing was written");
    assert.ok(!fs.existsSync(join(folder, "tail.ndjson")));
  }));

test("append() acknowledges nothing if the tail is gone after a slow sync", (context) =>
  withOpenLog(async (log, folder) => {
    context.mock.method(log.files.tail.file, "sync", async () => {
      await rm(join(folder, "tail.ndjson"));
      passTime(context, 1000);
    });
    await assert.rejects(log.append([preparedBatch("slow")]), WriterPoisonedError);
  }));

test("replicate() commits nothing after a rest if the tail is gone", (context) =>
  withFolder(async (folder) => {
    const open = async (name: string) => {
      await mkdir(join(folder, name));
      return (await openTestLog(fileStorage(join(folder, name)))).log;
    };
    const [source, replica] = [await open("source"), await open("replica")];
    const copy = async (batchId: string) => {
      const start = fs.statSync(join(folder, "source", "tail.ndjson")).size;
      const batches = await source.append([preparedBatch(batchId)]);
      const commit = fs.readFileSync(join(folder, "source", "tail.ndjson")).subarray(start);
      const lines = commit.subarray(commit.indexOf("\n") + 1);
      await replica.replicate({ batches: [...batches], head: source.head }, lines);
    };
    await copy("a");
    assert.equal(replica.head, source.head);
    await rename(join(folder, "replica", "tail.ndjson"), join(folder, "taken"));
    const sizeBytes = fs.statSync(join(folder, "taken")).size;
    passTime(context, 1000);
    await assert.rejects(copy("b"), WriterPoisonedError);
    assert.equal(fs.statSync(join(folder, "taken")).size, sizeBytes, "nothing was written");
    await Promise.all([source.close(), replica.close()]);
  }));
