/** The socket that a server binds: its path, its permissions, and files that take its place. */
import assert from "node:assert/strict";
import { existsSync, lstatSync, readFileSync, unlinkSync } from "node:fs";
import { chmod, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { HttpHandler } from "../../src/http/message.ts";
import { refusalResponse } from "../../src/api/responses.ts";
import { listen } from "../../src/http/server.ts";
import { withFolder } from "../../tools/support/program.ts";
import { exchange } from "../support/raw_client.ts";

const handler: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: "" });

test("listen() rejects when its socket path exists", async () => {
  await withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    await writeFile(path, "");
    const started = listen({ path, handler, refusal: assert.fail, report: assert.fail });
    await assert.rejects(started, { code: "EADDRINUSE" });
  });
});

test("listen() reports another file in place of its socket, and binds again once it is gone", () =>
  withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    const reported = Promise.withResolvers<string>();
    const server = await listen({
      path,
      handler,
      refusal: refusalResponse,
      report: reported.resolve,
      acceptProbeMs: 10,
    });
    await writeFile(join(folder, "other"), "other");
    await rename(join(folder, "other"), path);
    assert.equal(
      await reported.promise,
      `${path}: does not accept connections; reopening the socket`,
    );
    while (!existsSync(path)) await setImmediate();
    assert.equal(readFileSync(path, "utf8"), "other");
    unlinkSync(path);
    while (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) await setImmediate();
    assert.equal((await exchange(path, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))?.status, 200);
    await server.close();
  }));

for (
  const [folderMode, socketMode, title] of [
    [0o777, 0o600, "its owner alone"],
    [0o2750, 0o660, "the group of its directory if that has the setgid bit"],
  ] as const
) {
  test(`listen() lets ${title} connect`, () =>
    withFolder(async (folder) => {
      await chmod(folder, folderMode);
      const path = join(folder, "s.sock");
      const server = await listen({ path, handler, refusal: refusalResponse, report() {} });
      assert.equal(lstatSync(path).mode & 0o777, socketMode);
      await server.close();
    }));
}
