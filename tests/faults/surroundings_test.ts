/**
 * What happens around a running `serve`: its socket file is removed, its log is reached by another
 * path, its terminal goes away.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { allEvents, batchWith, commit } from "../contract/support/api.ts";
import {
  runCli,
  type Serving,
  signalChild,
  startServe,
  withFolder,
} from "../../tools/support/program.ts";
import { RawConnection } from "../support/raw_client.ts";

const GET = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";

interface Served {
  folder: string;
  dir: string;
  socketPath: string;
  serving: Serving;
}

/** Runs `use` with a service that has acknowledged a batch, and leaves no process behind. */
function withServing(use: (served: Served) => Promise<void>): Promise<void> {
  return withFolder(async (folder) => {
    const dir = join(folder, "log");
    const socketPath = join(dir, "data", "ground.sock");
    await init(dir, () => {});
    const serving = await startServe(dir);
    try {
      await commit(socketPath, batchWith({ batch_id: "before" }));
      await use({ folder, dir, socketPath, serving });
    } finally {
      const { exitCode, signalCode } = serving.child;
      if (exitCode === null && signalCode === null) await serving.stop("SIGKILL");
    }
  });
}

/** That a new start has the batch, and appends behind it. */
async function assertGoesOn({ dir, socketPath }: Served): Promise<void> {
  const again = await startServe(dir);
  await commit(socketPath, batchWith({ batch_id: "after" }));
  const batchIds = (await allEvents(socketPath)).map(({ batch_id }) => batch_id);
  assert.deepEqual(batchIds, ["before", "after"]);
  assert.equal((await again.stop()).code, 0);
}

test("serve whose socket file was removed keeps its log and its clients, and ends clean", () =>
  withServing(async (served) => {
    const { dir, socketPath, serving } = served;
    const connection = await RawConnection.open(socketPath);
    await rm(socketPath);
    const second = await runCli(["serve", "--config", join(dir, "service.toml")]);
    assert.equal(second.code, 1);
    assert.match(second.stderr, /\.lock: held by another process/);
    assert.ok(!existsSync(socketPath), "the second one has bound nothing");
    await connection.write(GET);
    assert.equal((await connection.readResponse())?.status, 200);
    connection.destroy();
    assert.equal((await serving.stop()).code, 0);
    await assertGoesOn(served);
  }));

test("serve that reaches a served log by another path is refused", () =>
  withServing(async (served) => {
    const { folder, dir, serving } = served;
    await symlink(dir, join(folder, "link"));
    for (const command of ["serve", "seal"]) {
      const args = [command, "--config", join(folder, "link", "service.toml")];
      const { code, stderr } = await runCli(args);
      assert.equal(code, 1);
      assert.match(stderr, /\.lock: held by another process/);
    }
    assert.equal((await serving.stop()).code, 0);
    await assertGoesOn(served);
  }));

test("serve whose terminal goes away has all it acknowledged at the next start", () =>
  withServing(async (served) => {
    const { serving } = served;
    signalChild(serving.child, "SIGHUP");
    const { code, signal } = await serving.exited;
    assert.ok(code !== 0 || signal === "SIGHUP");
    await assertGoesOn(served);
  }));
