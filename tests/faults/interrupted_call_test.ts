/**
 * The bug: a write to the tail that a signal interrupted (EINTR) stopped the writer under Deno, and
 * a read cost its request a 500 on both runtimes, although such a call has done nothing and can be
 * made again. Network and user-space file systems interrupt calls. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { allEvents, batchWith, commit } from "../contract/support/api.ts";
import { type Serving, startServe, withFolder } from "../../tools/support/program.ts";
import { skipLoudly } from "./support/skip.ts";
import { attachStrace, straceAbsence } from "./support/strace.ts";

/** Of each thread, the first call on the tail is interrupted. */
const CASES: [title: string, calls: string][] = [
  ["write", "write,writev,pwrite64,pwritev"],
  ["read", "read,readv,pread64,preadv"],
  ["fdatasync", "fdatasync"],
];

/** A service that reads its first event from the disk: the process before it wrote that. */
async function withSecondStart(use: (serving: Serving, dir: string) => Promise<void>) {
  await withFolder(async (dir) => {
    await init(dir, () => {});
    const first = await startServe(dir);
    await commit(join(dir, "data", "ground.sock"), batchWith({ batch_id: "first" }));
    await first.stop();
    const serving = await startServe(dir);
    try {
      await use(serving, dir);
    } finally {
      await serving.stop();
    }
  });
}

const absence = straceAbsence();
for (const [title, calls] of CASES) {
  test(`serve makes a ${title} again that a signal interrupts`, async (context) => {
    if (absence !== null) return skipLoudly(context, absence);
    await withSecondStart(async (serving, dir) => {
      const inject = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=EINTR:when=1`];
      const onTail = ["-P", join(dir, "data", "log", "tail.ndjson")];
      const tracer = await attachStrace(serving.child.pid!, dir, [...inject, ...onTail]);
      let lines: string[] = [];
      try {
        const socketPath = join(dir, "data", "ground.sock");
        await commit(socketPath, batchWith({ batch_id: "second" }));
        const batchIds = (await allEvents(socketPath)).map(({ batch_id }) => batch_id);
        assert.deepEqual(batchIds, ["first", "second"]);
      } finally {
        lines = await tracer.stop();
      }
      assert.ok(lines.some((line) => line.includes("(INJECTED)")), lines.join("\n"));
    });
  });
}
