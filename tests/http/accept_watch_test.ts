/**
 * Regression: after running out of descriptors, Deno silently stopped accepting connections.
 * tests/faults/descriptors_test.ts reproduces the bug with the real service.
 */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { AcceptWatch } from "../../src/http/accept_watch.ts";
import { withFolder } from "../../tools/support/program.ts";

/** Probe intervals. `telling` is long enough to accept a connection, even on a slow machine. */
const INTERVAL_MS = { telling: 250, silent: 20 };

/** Runs `use` with a watch on a server that does or does not report its connections. */
function withWatch(
  kind: "telling" | "silent",
  use: (server: Server, reopenings: EventEmitter) => Promise<void>,
): Promise<void> {
  return withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    const server = createServer((socket) => {
      if (kind === "telling") watch.accepted();
      socket.resume();
    });
    server.listen(path);
    await once(server, "listening");
    const reopenings = new EventEmitter();
    const reopen = () => {
      reopenings.emit("reopen");
      return Promise.reject(new Error("no descriptor either"));
    };
    const watch = new AcceptWatch(path, INTERVAL_MS[kind], reopen);
    try {
      await use(server, reopenings);
    } finally {
      watch.stop();
      server.close();
    }
  });
}

test("AcceptWatch probes regularly without disturbing a server that accepts connections", () =>
  withWatch("telling", async (server, reopenings) => {
    reopenings.on("reopen", () => assert.fail("the server accepts connections"));
    for (let n = 0; n < 3; n++) await once(server, "connection");
  }));

test("AcceptWatch reopens a socket that accepts no connections, and retries until it succeeds", () =>
  withWatch("silent", async (_server, reopenings) => {
    for (let n = 0; n < 3; n++) await once(reopenings, "reopen");
  }));
