/**
 * Standard output and error that nobody takes: closed before the start, full, or left by their
 * reader. No message goes into the log, none ends the service, and `verify` does not pass for
 * successful when its report is lost.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { untilReported } from "../../tools/support/program.ts";
import { type Deployment, withServing } from "../support/deployment.ts";

/** A program that is started with its streams redirected by a shell. */
function redirected(redirections: string): string[] {
  return ["sh", "-c", `exec "$0" "$@" ${redirections}`];
}

/** Runs `use` with a deployment whose last run was killed: a start has something to say. */
function withKilledDeployment(use: (deployment: Deployment) => Promise<void>) {
  return withServing(async (deployment) => {
    await deployment.append("before");
    await deployment.stop("SIGKILL");
    await appendFile(join(deployment.logDir, "tail.ndjson"), '{"commit":{"batches":[');
    await use(deployment);
  });
}

/** A closed stream leaves its number to the next file that is opened. */
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
  const skip = existsSync(device) ? false : `there is no ${device}`;
  test(
    `serve with ${title} standard streams serves, and keeps its log intact`,
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

test("serve survives the loss of standard error's reader and shuts down cleanly", () =>
  withKilledDeployment(async (deployment) => {
    const serving = await deployment.start();
    await untilReported(serving, "serving");
    serving.child.stderr!.destroy();
    await deployment.append("after");
    // It says that it shuts down, to nobody.
    await deployment.stop();
    await assertNoMessages(deployment.dir);
    await deployment.assertContinues();
  }));

test("verify exits 1 when its report cannot be written", {
  skip: existsSync("/dev/full") ? false : "there is no /dev/full",
}, () =>
  withKilledDeployment(async (deployment) => {
    assert.equal((await deployment.run(["verify"])).code, 0);
    const full = { wrapper: redirected(">/dev/full") };
    const { code, stderr } = await deployment.run(["verify"], full);
    assert.equal(code, 1);
    assert.match(stderr, /ENOSPC|space/i);
  }));
