/**
 * Unusable standard streams: closed at startup, full, or without a reader. Messages neither
 * end up in the log nor stop the service, and `verify` fails if its report is lost.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { untilReported } from "../../tools/support/program.ts";
import { type Deployment, withServing } from "../support/deployment.ts";

/** A wrapper that runs a program in a shell with redirected streams. */
function redirected(redirections: string): string[] {
  return ["sh", "-c", `exec "$0" "$@" ${redirections}`];
}

/** Runs `use` with a deployment whose service was killed, so that the next one reports a repair. */
function withKilledDeployment(use: (deployment: Deployment) => Promise<void>) {
  return withServing(async (deployment) => {
    await deployment.append("before");
    await deployment.stop("SIGKILL");
    await appendFile(join(deployment.logDir, "tail.ndjson"), '{"commit":{"batches":[');
    await use(deployment);
  });
}

/** Asserts that no file contains a message. A file may reuse the descriptor of a closed stream. */
async function assertNoMessages(dir: string): Promise<void> {
  const entries = await readdir(join(dir, "data"), { recursive: true, withFileTypes: true });
  for (const { name, parentPath } of entries.filter((entry) => entry.isFile())) {
    const content = await readFile(join(parentPath, name), "utf8");
    assert.doesNotMatch(content, /^(serving|shutting down|tail)/m, name);
  }
}

const UNTAKEN: [title: string, redirections: string, device: string][] = [
  ["closed", "<&- >&- 2>&-", "/dev/null"],
  ["full", ">/dev/full 2>/dev/full", "/dev/full"],
];

for (const [title, redirections, device] of UNTAKEN) {
  const skip = existsSync(device) ? false : `${device} does not exist`;
  test(
    `serve with ${title} standard streams serves and keeps its log intact`,
    { skip },
    () =>
      withKilledDeployment(async (deployment) => {
        await deployment.start({ wrapper: redirected(redirections) });
        await deployment.append("after");
        assert.equal((await deployment.stop()).stderr, "");
        await assertNoMessages(deployment.dir);
        await deployment.assertContinues();
      }),
  );
}

test("serve survives losing the reader of standard error and shuts down cleanly", () =>
  withKilledDeployment(async (deployment) => {
    const serving = await deployment.start();
    await untilReported(serving, "serving");
    serving.child.stderr!.destroy();
    await deployment.append("after");
    // No one reads the shutdown message.
    await deployment.stop();
    await assertNoMessages(deployment.dir);
    await deployment.assertContinues();
  }));

const skip = !existsSync("/dev/full");
test(
  "verify exits 1 when its report cannot be written",
  { skip },
  () =>
    withKilledDeployment(async (deployment) => {
      assert.equal((await deployment.run(["verify"])).code, 0);
      const full = { wrapper: redirected(">/dev/full") };
      const { code, stderr } = await deployment.run(["verify"], full);
      assert.equal(code, 1);
      assert.match(stderr, /ENOSPC|space/i);
    }),
);
