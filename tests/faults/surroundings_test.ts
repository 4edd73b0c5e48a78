/**
 * Changes around a running `serve`: its socket file is removed, its log is opened under another
 * path, or its terminal closes. Nothing acknowledged is lost.
 */
import assert from "node:assert/strict";
import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, signalChild } from "../../tools/support/program.ts";
import { type Deployment, withServing } from "../support/deployment.ts";
import { RawConnection } from "../support/raw_client.ts";

const GET = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";

/** Runs `use` with a service that has acknowledged a batch. */
function withBatch(use: (served: Deployment) => Promise<void>): Promise<void> {
  return withServing(async (served) => {
    await served.append("before");
    await use(served);
    await served.assertContinues();
  });
}

test("serve survives the removal of its socket file and exits cleanly", () =>
  withBatch(async (served) => {
    const { socketPath } = served;
    const connection = await RawConnection.open(socketPath);
    await rm(socketPath);
    const second = await served.run(["serve"]);
    assert.equal(second.code, 1);
    assert.match(second.stderr, /\.lock: held by another process/);
    await connection.write(GET);
    assert.equal((await connection.readResponse())?.status, 200);
    connection.destroy();
    await served.stop();
  }));

test("serve refuses a log that another process serves under another path", () =>
  withBatch(async (served) => {
    const { folder, dir } = served;
    await symlink(dir, join(folder, "link"));
    for (const command of ["serve", "seal"]) {
      const args = [command, "--config", join(folder, "link", "service.toml")];
      const { code, stderr } = await runCli(args);
      assert.equal(code, 1);
      assert.match(stderr, /\.lock: held by another process/);
    }
    await served.stop();
  }));

test("serve exits 0 when its terminal closes, and a restart returns everything acknowledged", () =>
  withBatch(async (served) => {
    const { serving } = served;
    signalChild(serving.child, "SIGHUP");
    const { code, signal } = await serving.exited;
    assert.deepEqual([code, signal], [0, null]);
  }));
