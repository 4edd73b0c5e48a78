/** Clients of a socket that has never existed, or that no longer exists. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { ConnectionError } from "../../src/client/errors.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { Retry } from "../../src/client/retry.ts";
import { type Fetch, unixFetch } from "../../src/client/unix_fetch.ts";
import { withFolder } from "../../tools/support/program.ts";
import { CALLS, errorOf, FakeTiming } from "./support/fake_service.ts";

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name}() fails within a second and names the path if it has never found a socket`, () =>
    withFolder(async (folder) => {
      const path = join(folder, "none.sock");
      const timing = new FakeTiming();
      const retries: Retry[] = [];
      const onRetry = (retry: Retry) => void retries.push(retry);
      const client = new EventLogClient(unixFetch(path), { timing, onRetry, attemptsMax: 1e9 });
      const error = await errorOf(ConnectionError, call(client));
      assert.ok(error.message.includes(path), error.message);
      const waitedMs = timing.pausesMs.reduce((sum, pauseMs) => sum + pauseMs, 0);
      assert.ok(timing.pausesMs.length > 0 && waitedMs <= 1000, `${timing.pausesMs}`);
      const heard = name === "follow" ? [] : timing.pausesMs;
      assert.deepEqual(retries.map(({ pauseMs }) => pauseMs), heard);
    }));
}

test("a client of a path that is not a socket fails at once, and says so", () =>
  withFolder(async (folder) => {
    const path = join(folder, "file");
    await writeFile(path, "");
    const timing = new FakeTiming();
    const error = await new EventLogClient(unixFetch(path), { timing }).streams().catch(String);
    assert.match(
      String(error),
      new RegExp(`connection to ${path} failed: the path is not a socket$`),
    );
    assert.deepEqual(timing.pausesMs, []);
  }));

/** A `fetch` that fails with a system error, as `unixFetch()` does. */
function failWith(code: string): Fetch {
  const cause = Object.assign(new Error(`connect ${code}`), { code });
  return () => Promise.reject(new TypeError("failed", { cause }));
}

for (const code of ["EACCES", "EINVAL", "ENAMETOOLONG", "ENOTDIR", "ENOTSOCK", "EPERM"]) {
  test(`no call is repeated after ${code}, which a retry cannot fix`, async () => {
    for (const call of Object.values(CALLS)) {
      const timing = new FakeTiming();
      const options = { timing, attemptsMax: Infinity, socketWaitMs: 60_000 };
      await assert.rejects(call(new EventLogClient(failWith(code), options)), ConnectionError);
      assert.deepEqual(timing.pausesMs, []);
    }
  });
}

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name}() waits socketWaitMs for a service that starts, beyond attemptsMax`, async () => {
    for (const code of ["ENOENT", "ECONNREFUSED"]) {
      const timing = new FakeTiming();
      const options = { timing, attemptsMax: 1, socketWaitMs: 60_000, writeTimeoutMs: 90_000 };
      await assert.rejects(call(new EventLogClient(failWith(code), options)), ConnectionError);
      const waitedMs = timing.nowMs();
      assert.ok(waitedMs > 50_000 && waitedMs <= 60_000, `${code}: ${timing.pausesMs}`);
    }
  });
}

test("a client reaches a service whose socket appears while it waits", () =>
  withFolder(async (folder) => {
    const path = join(folder, "s.sock");
    const server = createServer((_, response) => void response.end(JSON.stringify(EMPTY)));
    const client = new EventLogClient(unixFetch(path), {
      attemptsMax: 1,
      socketWaitMs: 60_000,
      onRetry: ({ failures }) => void (failures === 1 && server.listen(path)),
    });
    try {
      assert.deepEqual((await client.streams()).streams, []);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }));

const EMPTY = { v: 1, streams: [], next_after: null, snapshot_through_event_id: null };

test("a client that has reached its service waits for the socket to reappear", async () => {
  let calls = 0;
  const missing = failWith("ENOENT");
  const fetch = () => {
    calls++;
    if (calls === 1 || calls === 15) return Promise.resolve(Response.json(EMPTY));
    return missing("/");
  };
  const failures: number[] = [];
  const onRetry = (retry: Retry) => void failures.push(retry.failures);
  const client = new EventLogClient(fetch, { timing: new FakeTiming(), onRetry });
  await client.streams();
  await client.streams();
  assert.deepEqual(failures, Array.from({ length: 13 }, (_, index) => index + 1));
});
