/**
 * The bug: a write to the tail that a signal interrupted (EINTR) stopped the writer under Deno, and
 * a read cost its request a 500 on both runtimes, although such a call has done nothing and can be
 * made again. Network and user-space file systems interrupt calls. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { allEvents, batchWith, commit } from "../contract/support/api.ts";
import { type Deployment, withServing } from "../support/deployment.ts";
import { skipLoudly } from "./support/skip.ts";
import { attachStrace, straceAbsence } from "./support/strace.ts";

/** Of each thread, the first call on the tail is interrupted. */
const CASES: [title: string, calls: string][] = [
  ["write", "write,writev,pwrite64,pwritev"],
  ["read", "read,readv,pread64,preadv"],
  ["fdatasync", "fdatasync"],
];

/** A service that reads its first event from the disk: the process before it wrote that. */
function withSecondStart(use: (deployment: Deployment) => Promise<void>): Promise<void> {
  return withServing(async (deployment) => {
    await commit(deployment.socketPath, batchWith({ batch_id: "first" }));
    await deployment.stop();
    await deployment.start();
    await use(deployment);
    await deployment.stop();
  });
}

const absence = straceAbsence();
for (const [title, calls] of CASES) {
  test(`serve makes a ${title} again that a signal interrupts`, async (context) => {
    if (absence !== null) return skipLoudly(context, absence);
    await withSecondStart(async ({ serving, folder, logDir, socketPath }) => {
      const inject = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=EINTR:when=1`];
      const onTail = ["-P", join(logDir, "tail.ndjson")];
      const tracer = await attachStrace(serving.child.pid!, folder, [...inject, ...onTail]);
      let lines: string[] = [];
      try {
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
