/**
 * The bug: after there had been more clients than descriptors, Deno accepted nobody any more, and
 * did not tell. The real thing is in tests/faults/descriptors_test.ts.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { AcceptWatch } from "../../src/http/accept_watch.ts";
import { withFolder } from "../../tools/support/program.ts";

/** A server that accepts does so within one of its own, however slow the machine. */
const INTERVAL_MS = { telling: 250, silent: 20 };

/** Runs `use` with a watch over a server that tells it of its connections, or does not. */
function withWatch(
  kind: "telling" | "silent",
  use: (seen: { connected: () => Promise<unknown>; reopened: () => Promise<unknown> }) => unknown,
): Promise<void> {
  return withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    const server = createServer((socket) => {
      if (kind === "telling") watch.accepted();
      socket.resume();
    });
    server.listen(path);
    await once(server, "listening");
    let wake = () => {};
    let isReopened = false;
    const reopen = () => {
      isReopened = true;
      wake();
      return Promise.reject(new Error("no descriptor either"));
    };
    const watch = new AcceptWatch({ path, intervalMs: INTERVAL_MS[kind], reopen });
    try {
      await use({
        connected: () => once(server, "connection"),
        reopened: () => new Promise<void>((resolve) => wake = resolve),
      });
      assert.equal(isReopened, kind === "silent");
    } finally {
      watch.stop();
      server.close();
    }
  });
}

test("AcceptWatch connects now and then, and leaves a server that accepts alone", () =>
  withWatch("telling", async ({ connected }) => {
    for (let n = 0; n < 3; n++) await connected();
  }));

test("AcceptWatch has a socket opened anew that accepts nothing, again until it can be", () =>
  withWatch("silent", async ({ reopened }) => {
    for (let n = 0; n < 3; n++) await reopened();
  }));
