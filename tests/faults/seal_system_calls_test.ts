/**
 * A system call in the real `seal` fails at each step. The command prints the reason and exits with
 * status 1, every event still exists, and the next `seal` completes. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, withFolder } from "../../tools/support/program.ts";
import { assertWhole, configOf, makeWhole, runOn } from "./support/hostile_deployment.ts";
import { skipLoudly } from "./support/skip.ts";
import { straceAbsence } from "./support/strace.ts";

const WRITES = "write,writev,pwrite64,pwritev,pwritev2";
const SYNCS = "fsync,fdatasync";
const RENAMES = "rename,renameat,renameat2";
const REMOVALS = "unlink,unlinkat";

const SEGMENT_ASIDE = "segments/new.parquet.tmp";
const MANIFEST_ASIDE = "manifest.json.tmp";

/** A null path refers to the pending file. */
const CASES: [title: string, calls: string, path: string | null, errno: string][] = [
  ["the rename of the tail", RENAMES, "tail.ndjson", "EIO"],
  ["the fsync of pending/", SYNCS, "pending", "EIO"],
  ["the fsync of the log directory", SYNCS, ".", "EIO"],
  ["a write to the segment", WRITES, SEGMENT_ASIDE, "EIO"],
  ["a write to the segment (no space)", WRITES, SEGMENT_ASIDE, "ENOSPC"],
  ["the fsync of the segment", SYNCS, SEGMENT_ASIDE, "EIO"],
  ["the rename of the segment", RENAMES, SEGMENT_ASIDE, "EIO"],
  ["the fsync of segments/", SYNCS, "segments", "EIO"],
  ["a write to the manifest (no space)", WRITES, MANIFEST_ASIDE, "ENOSPC"],
  ["the fsync of the manifest", SYNCS, MANIFEST_ASIDE, "EIO"],
  ["the rename of the manifest", RENAMES, MANIFEST_ASIDE, "EIO"],
  ["the removal of a pending file", REMOVALS, null, "EIO"],
];

/** Runs `seal` in a separate process, in which the system calls `calls` on `path` fail. */
function sealUnder(dir: string, calls: string, path: string, errno: string) {
  const fault = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${errno}`];
  const target = ["-P", join(dir, path)];
  const wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", ...fault, ...target];
  return runCli(["seal", "--config", configOf(dir)], { wrapper });
}

const absence = straceAbsence();
for (const [title, calls, path, errno] of CASES) {
  test(`seal exits 1 on failure of ${title}, and the next seal completes`, async (context) => {
    if (absence !== null) return skipLoudly(context, absence);
    await withFolder(async (folder) => {
      const { dir, pending } = await makeWhole(join(folder, "whole"));
      const at = path === null ? pending : join("data", "log", path);
      const { code, stderr } = await sealUnder(dir, calls, at, errno);
      assert.equal(code, 1, stderr);
      assert.match(stderr, new RegExp(`${errno}|os error`), "the message gives the reason");
      assert.doesNotMatch(stderr, /defect/);
      await assertWhole(dir);
      const again = await runOn(dir, ["seal"]);
      if (again.status !== 0) assert.match(again.stderr, /nothing to seal/);
      const { orphans, remnants } = await assertWhole(dir);
      assert.deepEqual([orphans, remnants], [[], []]);
    });
  });
}
