import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { TableCache } from "../../../src/log/index/table_cache.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const LISTED = ["a", "b", "c", "d"].map((path) => ({ path, bytes: 1 }));

function diskOf(listed = LISTED): SimulatedDisk {
  return new SimulatedDisk(new Map(listed.map(({ path }) => [path, Buffer.from(path)])));
}

test("TableCache stays within its limit without closing a file during a read", async () => {
  const storage = diskOf();
  const files = new TableCache(storage, 2);
  const read = async (place: number) => {
    const into = Buffer.alloc(1);
    const listed = LISTED[place % LISTED.length]!;
    assert.equal(await files.file(listed).read(into, 0), 1);
    assert.equal(into.toString(), listed.path);
  };
  for (let place = 0; place < 8; place++) {
    await read(place);
    assert.ok(storage.openFiles <= 3, "the evicted file is still closing");
  }
  await Promise.all(Array.from({ length: 40 }, (_, n) => read(n * n + (n >> 2))));
  const last = read(0);
  await files.close();
  await last;
  assert.equal(storage.openFiles, 0);
});
