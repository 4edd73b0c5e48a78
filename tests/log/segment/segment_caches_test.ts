import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  OpenFiles,
  openListedFile,
  ROW_GROUP_CACHE_BYTES_MAX,
  RowGroupCache,
} from "../../../src/log/segment/segment_caches.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const MIB = 1024 * 1024;

/** A cache of fake row groups, filled with their numbers, and the list of decoded numbers. */
function fakeRowGroups(sizeBytes: number) {
  const cache = new RowGroupCache();
  const decoded: number[] = [];
  let decoding = 0;
  const read = (number: number) =>
    cache.use(
      `${number}`,
      async () => {
        decoded.push(number);
        assert.equal(++decoding, 1, "one at a time");
        await Promise.resolve();
        decoding -= 1;
        return Buffer.allocUnsafeSlow(sizeBytes).fill(number);
      },
      (lines) => {
        assert.equal(lines.length, sizeBytes);
        assert.deepEqual([lines[0], lines.at(-1)], [number, number]);
      },
    );
  return { decoded, read };
}

test("RowGroupCache.use() evicts the least recently used lines", async () => {
  const sizeBytes = 4 * MIB;
  const fitting = ROW_GROUP_CACHE_BYTES_MAX / sizeBytes;
  const { decoded, read } = fakeRowGroups(sizeBytes);
  for (let number = 0; number < fitting; number++) await read(number);
  await read(0);
  await read(fitting);
  assert.equal(decoded.length, fitting + 1);
  // All row groups except number 1 are cached.
  await read(0);
  await read(2);
  assert.equal(decoded.length, fitting + 1);
  for (let round = 0; round < 3; round++) {
    await Promise.all([1, 3, 5, 1].map(read));
    await Promise.all([0, 2, 4, 9, 10, 11].map(read));
  }
  assert.ok(decoded.length > fitting + 3);
});

test("RowGroupCache.use() retries a failed decode without affecting other row groups", async () => {
  const cache = new RowGroupCache();
  let failures = 1;
  const read = (key: string) =>
    cache.use(
      key,
      () => failures-- > 0 ? Promise.reject(new Error("EIO")) : Promise.resolve(Buffer.from(key)),
      String,
    );
  const [failed, other] = await Promise.allSettled([read("a"), read("b")]);
  assert.equal(failed.status, "rejected");
  assert.deepEqual(other, { status: "fulfilled", value: "b" });
  assert.equal(await read("a"), "a");
});

const LISTED = ["a", "b", "c", "d"].map((path) => ({ path, bytes: 1 }));

function diskOf(listed = LISTED): SimulatedDisk {
  return new SimulatedDisk(new Map(listed.map(({ path }) => [path, Buffer.from(path)])));
}

test("OpenFiles stays within its limit without closing a file during a read", async () => {
  const storage = diskOf();
  const files = new OpenFiles(storage, 2);
  const read = async (place: number) => {
    const into = Buffer.alloc(1);
    const listed = LISTED[place % LISTED.length]!;
    assert.equal(await files.fileOf(listed).read(into, 0), 1);
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

test("OpenFiles retries after a failed open", async () => {
  const storage = diskOf();
  const files = new OpenFiles(storage);
  let failures = 2;
  storage.hook = ({ kind }) => kind === "open" && failures-- > 0 ? { errno: "EMFILE" } : null;
  const read = () => files.fileOf(LISTED[0]!).read(Buffer.alloc(1), 0);
  await assert.rejects(read(), /EMFILE/);
  await assert.rejects(read(), /EMFILE/);
  assert.equal(await read(), 1);
  await files.close();
});

test("openListedFile() refuses a file that is missing or has the wrong size", async () => {
  const storage = diskOf();
  const cases: [path: string, bytes: number, message: RegExp][] = [
    ["x", 1, /^x: listed in the manifest, but missing$/],
    ["a", 2, /^a: has 1 bytes, but the manifest says 2$/],
  ];
  for (const [path, bytes, message] of cases) {
    await assert.rejects(openListedFile(storage, { path, bytes }), (error) => {
      assert.ok(error instanceof CorruptLogError);
      assert.match(error.message, message);
      return true;
    });
  }
  storage.hook = ({ kind }) => kind === "size" ? { errno: "EIO" } : null;
  await assert.rejects(openListedFile(storage, LISTED[0]!), { code: "EIO" });
  assert.equal(storage.openFiles, 0);
});
