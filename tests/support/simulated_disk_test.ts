/** Tests the simulated disk's model rule by rule: the states that a crash can and cannot leave. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { StorageFile } from "../../src/log/storage/storage.ts";
import { seededRandom } from "../../tools/support/random.ts";
import {
  ALL_DONE,
  anyOf,
  type CrashChoice,
  NAMES_ONLY,
  SYNCED_ONLY,
  torn,
} from "./simulated_crash.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { SECTOR_BYTES } from "./simulated_file.ts";

const A = Buffer.alloc(3 * SECTOR_BYTES, "a");
const B = Buffer.alloc(3 * SECTOR_BYTES, "b");

async function fileOf(bytes: Uint8Array): Promise<{ disk: SimulatedDisk; file: StorageFile }> {
  const disk = new SimulatedDisk(new Map([["f", bytes]]));
  return { disk, file: await disk.open("f", "write") };
}

/** The content of `f` after a crash, one letter per sector, with `0` for zeros. */
function sectorsLeft(disk: SimulatedDisk, choice: CrashChoice): string {
  const bytes = disk.crash(choice).contents("f");
  return Array.from({ length: Math.ceil(bytes.length / SECTOR_BYTES) }, (_, place) => {
    const sector = bytes.subarray(place * SECTOR_BYTES, (place + 1) * SECTOR_BYTES);
    assert.ok(sector.every((byte) => byte === sector[0]), "no sector is torn");
    return sector[0] === 0 ? "0" : String.fromCharCode(sector[0]!);
  }).join("");
}

/** The results from many random crashes. */
function everyCrash(disk: SimulatedDisk): Set<string> {
  const random = seededRandom(1);
  return new Set(Array.from({ length: 500 }, () => sectorsLeft(disk, anyOf(random))));
}

function pathsLeft(disk: SimulatedDisk, kept: readonly boolean[]): string[] {
  const choice = { ...SYNCED_ONLY, keepsName: (_: unknown, place: number) => kept[place]! };
  return [...disk.treeAfter(choice).keys()].sort();
}

test("SimulatedDisk keeps synced bytes in a crash and any subset of unsynced sectors", async () => {
  const { disk, file } = await fileOf(A);
  await file.write(B, 0);
  assert.equal(everyCrash(disk).size, 8, "all subsets of three sectors");
  assert.equal(sectorsLeft(disk, SYNCED_ONLY), "aaa");
  assert.equal(sectorsLeft(disk, torn("the last sector")), "aab");
  assert.equal(sectorsLeft(disk, ALL_DONE), "bbb");
  await file.sync();
  assert.deepEqual([...everyCrash(disk)], ["bbb"]);
  assert.ok(disk.isDurable);
  for (const letter of ["a", "c"]) await file.write(Buffer.alloc(SECTOR_BYTES, letter), 0);
  assert.deepEqual([...everyCrash(disk)].sort(), ["abb", "bbb", "cbb"]);
});

test("SimulatedDisk may keep a new length without its bytes, or bytes without the new length", async () => {
  const { disk, file } = await fileOf(Buffer.alloc(0));
  await file.write(A, 0);
  assert.equal(sectorsLeft(disk, torn("only the size")), "000");
  assert.equal(sectorsLeft(disk, torn("every other sector")), "a0a");
  assert.equal(sectorsLeft(disk, torn("half the length")), "aa");
  assert.equal(disk.crash(torn("one byte")).contents("f").length, 1);
  await file.sync();
  await file.truncate(SECTOR_BYTES);
  assert.deepEqual([sectorsLeft(disk, SYNCED_ONLY), sectorsLeft(disk, ALL_DONE)], ["aaa", "a"]);
});

for (const pages of ["shown", "dropped"] as const) {
  test(`SimulatedDisk does not write the pages of a failed sync later (${pages})`, async () => {
    const { disk, file } = await fileOf(A);
    await file.write(B, 0);
    disk.hook = ({ kind }) => kind === "sync" ? { errno: "EIO", pages } : null;
    await assert.rejects(file.sync(), /EIO/);
    disk.hook = null;
    assert.ok(disk.contents("f").equals(pages === "shown" ? B : A));
    await file.sync();
    assert.equal(everyCrash(disk).size, 8);
    assert.ok(!disk.isDurable);
    await file.write(B.subarray(0, SECTOR_BYTES), 0);
    await file.sync();
    assert.deepEqual([...everyCrash(disk)].sort(), ["baa", "bab", "bba", "bbb"]);
    await file.write(B, 0);
    await file.sync();
    assert.deepEqual([...everyCrash(disk)], ["bbb"]);
  });
}

test("SimulatedDisk keeps synced names in a crash and any subset of the others", async () => {
  const disk = new SimulatedDisk();
  for (const name of ["x", "y"]) await (await disk.open(name, "create")).close();
  const bits = [false, true];
  const left = bits.flatMap((x) => bits.map((y) => pathsLeft(disk, [x, y]).join("")));
  assert.deepEqual(left, ["", "y", "x", "xy"]);
  await disk.syncFolder(".");
  assert.deepEqual(pathsLeft(disk, []), ["x", "y"]);
});

test("SimulatedDisk keeps or loses renames as a whole, and keeps no change without its prerequisites", async () => {
  const disk = new SimulatedDisk(new Map([["t", A], ["p", null]]));
  await disk.rename("t", "p/t");
  await (await disk.open("t", "create")).close();
  assert.deepEqual(pathsLeft(disk, [false, true]), ["p", "t"], "the new t needs the rename");
  assert.equal(disk.crash().contents("t").length, A.length, "which still holds the old bytes");
  assert.deepEqual(pathsLeft(disk, [true, false]), ["p", "p/t"]);
  await disk.syncFolder("p");
  assert.deepEqual(pathsLeft(disk, [false]), ["p", "p/t"]);
});

test("SimulatedDisk loses the contents of a directory whose name is lost", async () => {
  const disk = new SimulatedDisk();
  await disk.makeFolder("p");
  await (await disk.open("p/f", "create")).close();
  await disk.syncFolder("p");
  assert.deepEqual(pathsLeft(disk, [false]), []);
  await disk.syncFolder(".");
  assert.deepEqual(pathsLeft(disk, []), ["p", "p/f"]);
});

test("SimulatedDisk keeps the old bytes of a file when the rename over it is lost", async () => {
  const disk = new SimulatedDisk(new Map([["f", A], ["f.tmp", B]]));
  await disk.rename("f.tmp", "f");
  assert.equal(sectorsLeft(disk, SYNCED_ONLY), "aaa");
  assert.equal(sectorsLeft(disk, NAMES_ONLY), "bbb");
});

test("SimulatedDisk fails writes when full and accepts them once space is freed", async () => {
  const { disk, file } = await fileOf(A);
  disk.roomBytes = 10;
  await assert.rejects(file.write(B, A.length), { code: "ENOSPC" });
  assert.equal(disk.contents("f").length, A.length + 10, "the part that fits is written");
  await file.truncate(A.length - SECTOR_BYTES);
  await file.write(B.subarray(0, SECTOR_BYTES), A.length - SECTOR_BYTES);
  await file.write(B, 0);
  assert.equal(disk.roomBytes, 10);
});
