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
import { init } from "../../src/commands/init.ts";
import { allEvents, batchWith, commit } from "../contract/support/api.ts";
import { runCli, startServe, untilReported, withFolder } from "../../tools/support/program.ts";

/** A program that is started with its streams redirected by a shell. */
function redirected(redirections: string): string[] {
  return ["sh", "-c", `exec "$0" "$@" ${redirections}`];
}

/** Runs `use` with a deployment whose last run was killed: a start has something to say. */
function withKilledDeployment(use: (dir: string, socketPath: string) => Promise<void>) {
  return withFolder(async (dir) => {
    await init(dir, () => {});
    const socketPath = join(dir, "data", "ground.sock");
    const killed = await startServe(dir);
    await commit(socketPath, batchWith({ batch_id: "before" }));
    await killed.stop("SIGKILL");
    await appendFile(join(dir, "data", "log", "tail.ndjson"), '{"commit":{"batches":[');
    await use(dir, socketPath);
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

async function assertHolds(dir: string, socketPath: string, batchIds: string[]): Promise<void> {
  await assertNoMessages(dir);
  const serving = await startServe(dir);
  const events = await allEvents(socketPath);
  assert.deepEqual(events.map(({ batch_id }) => batch_id), batchIds);
  assert.equal((await serving.stop()).code, 0);
  const { code, stdout } = await runCli(
    ["verify", "--chain", "--config", join(dir, "service.toml")],
  );
  assert.equal(code, 0, stdout);
}

const UNTAKEN: [title: string, redirections: string, device: string][] = [
  ["closed", "<&- >&- 2>&-", "/dev/null"],
  ["full", ">/dev/full 2>/dev/full", "/dev/full"],
];

for (const [title, redirections, device] of UNTAKEN) {
  const skip = existsSync(device) ? false : `there is no ${device}`;
  test(
    `serve whose standard streams are ${title} serves, and keeps its log`,
    { skip },
    () =>
      withKilledDeployment(async (dir, socketPath) => {
        const serving = await startServe(dir, { wrapper: redirected(redirections) });
        await commit(socketPath, batchWith({ batch_id: "after" }));
        const { code, stderr } = await serving.stop();
        assert.deepEqual([code, stderr], [0, ""]);
        await assertHolds(dir, socketPath, ["before", "after"]);
      }),
  );
}

test("serve whose standard error lost its reader serves on and ends clean", () =>
  withKilledDeployment(async (dir, socketPath) => {
    const serving = await startServe(dir);
    await untilReported(serving, "serving");
    serving.child.stderr!.destroy();
    await commit(socketPath, batchWith({ batch_id: "after" }));
    // It says that it shuts down, to nobody.
    assert.equal((await serving.stop()).code, 0);
    await assertHolds(dir, socketPath, ["before", "after"]);
  }));

test("verify whose report nobody takes exits 1", {
  skip: existsSync("/dev/full") ? false : "there is no /dev/full",
}, () =>
  withKilledDeployment(async (dir) => {
    const args = ["verify", "--config", join(dir, "service.toml")];
    assert.equal((await runCli(args)).code, 0);
    const { code, stderr } = await runCli(args, { wrapper: redirected(">/dev/full") });
    assert.equal(code, 1);
    assert.match(stderr, /ENOSPC|space/i);
  }));
