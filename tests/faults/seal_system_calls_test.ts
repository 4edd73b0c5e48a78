/**
 * A system call in the real `seal` fails at each step, or the process is killed in it. A failure is
 * reported with its reason and exit status 1. Every event still exists, once and unchanged, and the
 * next `seal` completes. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runCli, withFolder } from "../../tools/support/program.ts";
import {
  assertWhole,
  configOf,
  makeWhole,
  runOn,
  type WholeDeployment,
} from "./support/hostile_deployment.ts";
import { testTraced } from "./support/strace.ts";

const WRITES = "write,writev,pwrite64,pwritev,pwritev2";
const SYNCS = "fsync,fdatasync";
const RENAMES = "rename,renameat,renameat2";
const REMOVALS = "unlink,unlinkat";

const TAIL_ASIDE = "tail.ndjson.tmp";
const SEGMENT_ASIDE = "segments/new.parquet.tmp";
const MANIFEST_ASIDE = "manifest.json.tmp";

/** A null path refers to the pending file. */
const CASES: [title: string, calls: string, path: string | null, errno: string][] = [
  ["the rename of the tail", RENAMES, "tail.ndjson", "EIO"],
  ["the rename of the new tail", RENAMES, TAIL_ASIDE, "EIO"],
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

/** Runs `seal` in a separate process, with a fault in the system calls `calls` on `path`. */
function sealUnder(dir: string, calls: string, path: string, fault: string) {
  const injection = ["-e", `trace=${calls}`, "-e", `inject=${calls}:${fault}`];
  const target = ["-P", join(dir, path)];
  const wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", ...injection, ...target];
  return runCli(["seal", "--config", configOf(dir)], { wrapper });
}

/** Asserts that a seal completes, or finds that there is only something to remove. */
async function assertCompletes(dir: string): Promise<void> {
  const again = await runOn(dir, ["seal"]);
  if (again.status !== 0) assert.match(again.stderr, /nothing to seal/);
  const { orphans, remnants } = await assertWhole(dir);
  assert.deepEqual([orphans, remnants], [[], []]);
}
for (const [title, calls, path, errno] of CASES) {
  const pathIn = ({ pending }: WholeDeployment) =>
    path === null ? pending : join("data", "log", path);

  testTraced(`seal exits 1 on failure of ${title}, and the next seal completes`, async () => {
    await withFolder(async (folder) => {
      const whole = await makeWhole(join(folder, "whole"));
      const { code, stderr } = await sealUnder(whole.dir, calls, pathIn(whole), `error=${errno}`);
      assert.equal(code, 1, stderr);
      assert.match(stderr, new RegExp(`${errno}|os error`), "the message gives the reason");
      assert.doesNotMatch(stderr, /defect/);
      await assertWhole(whole.dir);
      await assertCompletes(whole.dir);
    });
  });

  testTraced(`seal killed at ${title} loses nothing, and the next seal completes`, async () => {
    await withFolder(async (folder) => {
      const whole = await makeWhole(join(folder, "whole"));
      const killed = () => sealUnder(whole.dir, calls, pathIn(whole), "signal=KILL");
      assert.equal((await killed()).signal, "SIGKILL");
      await assertWhole(whole.dir);
      // The run that resumes it is killed too, if it gets to the same step.
      const { code, signal, stderr } = await killed();
      assert.ok(signal === "SIGKILL" || code === 0 || /nothing to seal/.test(stderr), stderr);
      await assertWhole(whole.dir);
      await assertCompletes(whole.dir);
    });
  });
}
