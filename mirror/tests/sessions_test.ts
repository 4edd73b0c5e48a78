/** Commands that must not try forever. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { isFinal } from "../failures.ts";
import { followLog } from "../push/follow.ts";
import { runSessions } from "../sessions.ts";
import { startMirror } from "./support/mirrored.ts";
import { withFolder } from "../../tools/support/program.ts";

const LIMITED = { stop: new AbortController().signal, report: () => {}, idleMsMax: 20 };

test("runSessions() gives up without progress, whether sessions fail or hang", async () => {
  const down = () => Promise.reject(new Error("no server"));
  await assert.rejects(runSessions(down, LIMITED), /gave up after 0\.02 s .*: no server$/);
  const hung = () => new Promise<void>(() => {});
  await assert.rejects(runSessions(hung, LIMITED), /gave up .*: the server did not respond$/);
});

test("runSessions() goes on while there is progress", async () => {
  const idleMsMax = 2000;
  let left = 5;
  await runSessions(async (onProgress) => {
    while (left-- > 0) {
      await new Promise((resolve) => setTimeout(resolve, idleMsMax / 4));
      onProgress();
    }
  }, { ...LIMITED, idleMsMax });
});

/** Reads a follow of `socket` to its end. */
async function follow(socket: string, readTimeoutMs?: number): Promise<void> {
  const address = { socket, ...(readTimeoutMs && { readTimeoutMs }) };
  for await (const _ of followLog(address, null, new AbortController().signal)) { /* Drop it. */ }
}

test("a session is repeated for a service that is down, and not for what is no socket", () =>
  withFolder(async (folder) => {
    const errorOf = (path: string) => follow(path).then(() => assert.fail(), (error) => error);
    await writeFile(join(folder, "file"), "");
    assert.ok(!isFinal(await errorOf(join(folder, "missing.sock"))));
    assert.ok(isFinal(await errorOf(join(folder, "file", "x.sock"))));
  }));

test("a follow ends if a service that has accepted it says nothing", () =>
  withFolder(async (folder) => {
    const socket = join(folder, "silent.sock");
    const server = createServer().listen(socket);
    try {
      await assert.rejects(follow(socket, 50), (error) => {
        assert.match((error as Error).message, /got no response within 50 ms; it was waiting for/);
        return !isFinal(error);
      });
    } finally {
      server.close();
    }
  }));

test("push refuses a path that is no socket before it connects to NATS", async () => {
  for (const socket of ["", "http://x", "x".repeat(200)]) {
    const { code, stderr } = await startMirror(["push", `--socket=${socket}`]).exited;
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^--socket: .*path of a Unix socket/);
  }
});
