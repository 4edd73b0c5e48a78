/** Rotation on a real disk while the process runs out of file descriptors. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { test, type TestContext } from "node:test";
import { type Log, openLog } from "../../../src/log/log.ts";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { testTime, unsealedBatches } from "../../support/test_log.ts";

/** Fails every open(2) from the first rename on. */
function failOpensAfterRename(context: TestContext): void {
  const { open, openSync, promises: { open: openHandle, rename } } = fs;
  context.after(() => {
    Object.assign(fs, { open, openSync });
    Object.assign(fs.promises, { open: openHandle, rename });
  });
  const emfile = () => Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  const fail = () => {
    throw emfile();
  };
  Object.assign(fs.promises, {
    rename: async (from: string, to: string) => {
      Object.assign(fs, {
        open: (...args: unknown[]) => (args.at(-1) as (error: Error) => void)(emfile()),
        openSync: fail,
      });
      Object.assign(fs.promises, { open: fail });
      await rename(from, to);
    },
  });
}

test("a rotation needs no descriptor after its first rename", (context) =>
  withFolder(async (folder) => {
    const open = (): Promise<Log> =>
      openLog({
        ...testTime(),
        storage: fileStorage(folder),
        report() {},
        sealing: {
          rotateBytes: 1,
          maker: {
            makeSegment: () => Promise.reject(new Error("no thread")),
            close: () => Promise.resolve(),
          },
        },
      });
    const log = await open();
    await log.append([preparedBatch("a")]);
    failOpensAfterRename(context);
    await log.append([preparedBatch("b")]);
    assert.deepEqual([log.size.pending_files, log.poison], [1, null]);
    await log.append([preparedBatch("c")]);
    assert.equal(log.poison, null);
    const batchIds = (await unsealedBatches(log)).map(({ batch_id }) => batch_id);
    assert.deepEqual(batchIds, ["a", "b", "c"]);
    await log.close();
  }));
