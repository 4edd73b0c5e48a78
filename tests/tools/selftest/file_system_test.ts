import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeFileSystem } from "../../../tools/selftest/file_system.ts";

const CASES: [type: number, name: string, doubt: RegExp | null][] = [
  [0x01021994, "tmpfs", /in memory/],
  [0x858458f6, "ramfs", /in memory/],
  [0x6969, "NFS", /may not/],
  [0xff534d42, "CIFS", /may not/],
  // This type is given as a signed 32-bit number.
  [0xff534d42 | 0, "CIFS", /may not/],
  [0x01021997, "9p", /may not/],
  [0x65735546, "FUSE", /may not/],
  [0x4d44, "FAT", /no journal/],
  [0xef53, "ext4", null],
  [0x9123683e, "Btrfs", null],
  [0x794c7630, "overlayfs", null],
  [0x12345678, "an unknown file system", null],
];

for (const [type, name, doubt] of CASES) {
  const verb = doubt === null ? "trusts" : "distrusts";
  test(`judgeFileSystem() ${verb} ${name} (${type})`, () => {
    const judged = judgeFileSystem(type, "linux");
    assert.equal(judged.name, name);
    if (doubt === null) assert.equal(judged.doubt, null);
    else assert.match(judged.doubt ?? "", doubt);
  });
}
