/** Runs the probes against storages with one fault each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Buffer } from "node:buffer";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import type { Storage, StorageFile } from "../../../src/log/storage/storage.ts";
import { probeRename, probeWrites } from "../../../tools/selftest/probes.ts";
import { withFolder } from "../../../tools/support/program.ts";

/** Storage whose files have other methods. */
function changed(storage: Storage, methodsOf: (file: StorageFile) => Partial<StorageFile>) {
  const open: Storage["open"] = async (path, mode) => {
    const file = await storage.open(path, mode);
    return Object.assign(file, methodsOf(file));
  };
  return { ...storage, open };
}

type Probe = (storage: Storage, dir: string) => Promise<unknown>;
const renames: Probe = (storage, dir) => probeRename(dir, storage);

const FAULTS: Record<string, [Probe, (storage: Storage) => Storage, RegExp]> = {
  "lost writes": [
    probeWrites,
    (storage) => changed(storage, () => ({ write: () => Promise.resolve() })),
    /is not read back correctly/,
  ],
  "writes that only append": [
    probeWrites,
    (storage) =>
      changed(storage, (file) => {
        const write = file.write.bind(file);
        return { write: async (bytes) => write(Buffer.from(bytes), await file.size() + 1) };
      }),
    /is not read back correctly/,
  ],
  "a truncate that does nothing": [
    probeWrites,
    (storage) => changed(storage, () => ({ truncate: () => Promise.resolve() })),
    /does not have its new size/,
  ],
  "an exclusive create that opens an existing file": [
    probeWrites,
    (storage) => {
      let opened = 0;
      const open: Storage["open"] = (path, mode) =>
        storage.open(path, mode === "create" && opened++ > 0 ? "write" : mode);
      return { ...storage, open };
    },
    /can be created again/,
  ],
  "a rename that is not atomic": [
    renames,
    (storage) => ({
      ...storage,
      async rename(from, to) {
        await storage.remove(to);
        await storage.rename(from, to);
      },
    }),
    /while one file replaces another, readers see neither version/,
  ],
  "a directory that cannot be synced": [
    renames,
    (storage) => ({ ...storage, syncFolder: () => Promise.reject(new Error("EINVAL")) }),
    /EINVAL/,
  ],
};

for (const [name, [probe, spoil, message]] of Object.entries(FAULTS)) {
  test(`the probes detect ${name}`, () =>
    withFolder(async (dir) => {
      await assert.rejects(() => probe(spoil(fileStorage(dir)), dir), message);
    }));
}
