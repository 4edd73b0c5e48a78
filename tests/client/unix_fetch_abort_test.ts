/**
 * The bug: a request that was aborted before it was connected could continue forever, because an
 * abort while the body was collected was missed, and on Deno sometimes one while it connected.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { withFolder } from "../../tools/support/program.ts";

/** Nothing will happen after this time. */
const HANG_MS = 5_000;
/** A request connects at some point within a turn of the event loop. */
const REPEATS = 20;

type Moment = (abort: () => void) => void;

const MOMENTS: Record<string, Moment> = {
  "at once": (abort) => abort(),
  "in a microtask": (abort) => void Promise.resolve().then(abort),
  "in the next turn": (abort) => void setImmediate(abort),
  "in the turn after that": (abort) => void setImmediate(() => setImmediate(abort)),
};

/** Reads an endless response until it is aborted. @returns the outcome. */
async function abortAt(socketPath: string, init: RequestInit, moment: Moment): Promise<unknown> {
  const controller = new AbortController();
  const reading = (async () => {
    const fetch = unixFetch(socketPath);
    const response = await fetch("/", { ...init, signal: controller.signal });
    return await response.text();
  })();
  moment(() => controller.abort("given up"));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hanging = new Promise((resolve) => {
    timer = setTimeout(() => resolve("it hangs"), HANG_MS);
  });
  try {
    return await Promise.race([reading, hanging]);
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
}

/** Responds with an endless body. */
async function withEndlessServer(use: (socketPath: string) => Promise<void>): Promise<void> {
  await withFolder(async (folder) => {
    const socketPath = join(folder, "endless.sock");
    const server = createServer((_request, response) => void response.write("more to come\n"));
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    try {
      await use(socketPath);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
}

for (const [name, moment] of Object.entries(MOMENTS)) {
  for (const [method, init] of Object.entries({ GET: {}, POST: { method: "POST", body: "x" } })) {
    test(`unixFetch() aborts a ${method} whose signal is aborted ${name}`, () =>
      withEndlessServer(async (socketPath) => {
        for (let repeat = 0; repeat < REPEATS; repeat++) {
          assert.equal(await abortAt(socketPath, init, moment), "given up");
        }
      }));
  }
}
