/** The `serve` command: readiness, shutdown and restart. */
import assert from "node:assert/strict";
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import { access, chmod, lstat, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  postJson,
  runCli,
  type Serving,
  signalChild,
  spawnScript,
  startServe,
  untilReady,
  untilReported,
  withInitialized,
} from "../../tools/support/program.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { openLog } from "../../src/log/log.ts";
import { preparedBatch } from "../support/prepared.ts";

const SERVE_WITH_CLOCK = fileURLToPath(new URL("../support/serve_with_clock.ts", import.meta.url));

const quiet = () => {};

function batch(id: number) {
  return {
    source: "shop",
    batch_id: `batch-${id}`,
    events: [{ stream: "orders", record_key: `order-${id}`, kind: "upserted", payload: { id } }],
  };
}

async function post(
  serving: Pick<Serving, "fetch">,
  id: number,
): Promise<{ status: number; body: string }> {
  const response = await postJson(serving, "/v1/events", batch(id));
  return { status: response.status, body: await response.text() };
}

/**
 * Sends batches concurrently, and sends a signal after a given number of responses.
 * @returns the ids of the acknowledged batches, once the process has ended.
 */
async function postMany(
  serving: Serving,
  batches: number,
  signalAfter: number,
  signal: NodeJS.Signals,
): Promise<string[]> {
  const acknowledged: string[] = [];
  const requests = Array.from({ length: batches }, async (_, id) => {
    const response = await post(serving, id).catch(() => null);
    if (response?.status !== 200) return;
    acknowledged.push(`batch-${id}`);
    if (acknowledged.length === signalAfter) signalChild(serving.child, signal);
  });
  await Promise.all([serving.exited, ...requests]);
  return acknowledged;
}

/** Asserts that the next run returns these batches. */
async function assertKept(dir: string, acknowledged: string[]): Promise<void> {
  const next = await startServe(dir);
  const kept = new Set(await batchIds(next));
  assert.deepEqual(acknowledged.filter((id) => !kept.has(id)), []);
  assert.equal((await next.stop()).code, 0);
}

async function batchIds({ fetch }: Serving): Promise<string[]> {
  const response = await fetch("/v1/events?limit=100000");
  const page = await response.json() as { events: { batch_id: string }[] };
  return page.events.map(({ batch_id }) => batch_id);
}

/** A connection with a request whose body never arrives. */
async function openRequest(socketPath: string): Promise<Socket> {
  const socket = connect({ path: socketPath });
  socket.on("error", quiet);
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  // 100 Continue shows that the server is waiting for the body.
  const asked = new Promise<void>((resolve) => socket.once("data", () => resolve()));
  const head = ["POST /v1/events HTTP/1.1", "Host: x", "Content-Length: 1000"];
  socket.write(`${[...head, "Expect: 100-continue"].join("\r\n")}\r\n\r\n`);
  await asked;
  socket.write("{");
  return socket;
}

const TIMED_LINE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (.*)$/;

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`serve exits 0 on ${signal}, and the next run returns its events`, () =>
    withInitialized(async (dir) => {
      const socketPath = join(dir, "data", "ground.sock");
      const first = await startServe(dir);
      assert.equal((await post(first, 1)).status, 200);
      const exit = await first.stop(signal);
      assert.equal(exit.code, 0, exit.stderr);
      assert.equal(exit.stdout, "");
      // Standard error is neither a terminal nor the journal. The specification words one line.
      const lines = exit.stderr.trimEnd().split("\n").map((line) =>
        line.startsWith("serving ") ? line : line.match(TIMED_LINE)?.[1]
      );
      const opened = "opened a log of 0 events; segments: 0, tail: 0 bytes";
      assert.deepEqual(lines, [opened, `serving ${socketPath}`, "shutting down"]);
      await assert.rejects(access(socketPath), "the socket is removed");
      await access(join(dir, "data", "log", ".lock"));

      const second = await startServe(dir);
      assert.deepEqual(await batchIds(second), ["batch-1"]);
      assert.equal((await post(second, 2)).status, 200);
      assert.equal((await second.stop(signal)).code, 0);
    }));
}

test("serve removes the stale socket of a killed process and keeps every acknowledged batch", () =>
  withInitialized(async (dir) => {
    const first = await startServe(dir);
    const acknowledged = await postMany(first, 50, 20, "SIGKILL");
    assert.equal((await first.exited).signal, "SIGKILL");
    assert.ok((await lstat(join(dir, "data", "ground.sock"))).isSocket());
    await assertKept(dir, acknowledged);
  }));

test("serve completes pending requests before it exits", () =>
  withInitialized(async (dir) => {
    const first = await startServe(dir);
    const acknowledged = await postMany(first, 200, 1, "SIGTERM");
    const { code, stderr } = await first.exited;
    assert.equal(code, 0, stderr);
    assert.ok(!stderr.includes("cut off"), stderr);
    await assertKept(dir, acknowledged);
  }));

test("serve exits 0 in bounded time when a client never finishes its request", () =>
  withInitialized(async (dir) => {
    const serving = await startServe(dir);
    const socket = await openRequest(join(dir, "data", "ground.sock"));
    const { code, stderr } = await serving.stop();
    assert.equal(code, 0, stderr);
    socket.destroy();
    const next = await startServe(dir);
    assert.equal((await post(next, 1)).status, 200);
    await next.stop();
  }));

/** Makes V8's threads allocate memory continuously. */
const ASK_FLAG = "--stress-concurrent-allocation";
const ASKING = { nodeFlags: [ASK_FLAG], denoFlags: [`--v8-flags=${ASK_FLAG}`] };
/** Number of times the service is started and stopped. */
const TURNS = 3;

test("serve exits while runtime threads wait for memory, even on a second signal", () =>
  withInitialized(async (dir) => {
    for (let turn = 0; turn < TURNS; turn++) {
      const once = await (await startServe(dir, ASKING)).stop();
      assert.deepEqual([once.code, once.signal], [0, null], once.stderr);
      const serving = await startServe(dir, ASKING);
      const socket = await openRequest(join(dir, "data", "ground.sock"));
      signalChild(serving.child, "SIGTERM");
      await untilReported(serving, "shutting down");
      const twice = await serving.stop("SIGINT");
      assert.deepEqual([twice.code, twice.signal], [1, null], twice.stderr);
      socket.destroy();
    }
  }));

test("serve locks out another serve and seal, while init accepts the deployment", () =>
  withInitialized(async (dir) => {
    const serving = await startServe(dir);
    for (const command of ["serve", "seal"]) {
      const { code, stdout, stderr } = await runCli([command], { cwd: dir });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /\.lock: held by another process/);
      // Deno, with few permissions, cannot tell the holder.
      const canTell = THIS_RUNTIME === "node" && process.platform === "linux";
      const [, pid] = /\(pid (\d+)\)/.exec(stderr) ?? [];
      assert.equal(pid, canTell ? `${serving.child.pid}` : undefined, stderr);
    }
    assert.equal((await runCli(["init", dir])).code, 0);
    assert.equal((await post(serving, 1)).status, 200, "the first one is unaffected");
    assert.equal((await serving.stop()).code, 0);
    assert.equal((await runCli(["init", dir])).code, 0);
  }));

test("serve requires its token and never prints it", () =>
  withInitialized(async (dir) => {
    const config = join(dir, "service.toml");
    const text = await readFile(config, "utf8");
    await writeFile(config, text.replace('token = ""', 'token = "s3cret"'));
    const serving = await startServe(dir);
    assert.equal((await serving.fetch("/v1/events")).status, 401);
    const headers = { authorization: "Bearer s3cret" };
    assert.equal((await serving.fetch("/v1/events", { headers })).status, 200);
    const { stderr } = await serving.stop();
    assert.ok(!stderr.includes("s3cret"));
  }));

test("serve creates only its own files, accessible only to their owner, whatever the umask", () =>
  withInitialized(async (dir) => {
    const wrapper = ["sh", "-c", 'umask 0 && exec "$0" "$@"'];
    const serving = await startServe(dir, { wrapper });
    await post(serving, 1);
    assert.equal((await lstat(join(dir, "data", "ground.sock"))).mode & 0o777, 0o600);
    await serving.stop();
    assert.deepEqual(await readdir(dir), ["data", "service.toml"]);
    assert.deepEqual(await readdir(join(dir, "data")), ["log"]);
    for (const name of [".lock", "manifest.json", "tail.ndjson"]) {
      assert.equal((await lstat(join(dir, "data", "log", name))).mode & 0o077, 0, name);
    }
  }));

test("serve omits timestamps when standard error is the journal", {
  skip: process.platform === "linux" ? false : "systemd runs only on Linux",
}, () =>
  withInitialized(async (dir) => {
    // Like systemd, sets JOURNAL_STREAM to the device and inode of standard error.
    const script = 'export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) && exec "$0" "$@"';
    const serving = await startServe(dir, {
      wrapper: ["sh", "-c", script],
      permissions: [
        "--allow-read",
        "--allow-write",
        "--allow-sys",
        "--allow-net",
        "--allow-env=JOURNAL_STREAM",
      ],
    });
    const { stderr } = await serving.stop();
    assert.match(stderr, /^opened a log of 0 events;.*\nserving .*\nshutting down\n$/);
  }));

test("serve reports once, at its start, that the clock is behind the last event", () =>
  withInitialized(async (dir) => {
    const aheadMs = 7_200_000;
    const log = await openLog({
      storage: fileStorage(join(dir, "data", "log")),
      clockMs: () => Date.now() + aheadMs,
      randomBytes: (into) => void randomFillSync(into),
      report: assert.fail,
    });
    await log.append([preparedBatch("1")]);
    await log.close();
    const serving = await startServe(dir);
    assert.equal((await post(serving, 1)).status, 200);
    const { code, stderr } = await serving.stop();
    const told = stderr.match(
      /the clock is \d+ s behind the last event \S+; .* check the clock\n/g,
    );
    assert.deepEqual([code, told?.length], [0, 1], stderr);
  }));

test("serve reports a jump of the clock, and after a commit that the clock is behind it", () =>
  withInitialized(async (dir) => {
    const aheadPath = join(dir, "ahead");
    const setAhead = async (ms: number) => {
      await writeFile(`${aheadPath}.new`, `${ms}`);
      await rename(`${aheadPath}.new`, aheadPath);
    };
    await setAhead(7_200_000);
    const spawned = spawnScript(SERVE_WITH_CLOCK, [join(dir, "service.toml"), aheadPath]);
    const serving = { ...spawned, fetch: unixFetch(join(dir, "data", "ground.sock")) };
    await untilReady(serving);
    assert.equal((await post(serving, 1)).status, 200);
    await setAhead(0);
    await untilReported(spawned, "the clock jumped by -7200 s\n");
    assert.equal((await post(serving, 2)).status, 200);
    await untilReported(spawned, " s behind the last event ");
    signalChild(spawned.child, "SIGTERM");
    const { code, stderr } = await spawned.exited;
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      /\nthe clock is 7\d{3} s behind the last event \S+; until it catches up, /,
    );
  }));

/** Regression: on Node, a process of the same user could open the inspector. */
test("serve ignores SIGUSR1, which opens no inspector", () =>
  withInitialized(async (dir) => {
    const serving = await startServe(dir);
    signalChild(serving.child, "SIGUSR1");
    signalChild(serving.child, "SIGUSR2");
    await untilReported(serving, "memory_bytes");
    assert.equal((await post(serving, 1)).status, 200);
    const { code, stderr } = await serving.stop();
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /[Dd]ebugger|inspector/);
  }));

/** Whether the inspector's default port accepts a connection. */
async function isInspectable(): Promise<boolean> {
  const socket = connect(9229, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(() => true, () => false);
  socket.destroy();
  return isOpen;
}

/** Deno 2.9.2 and later listen for the signal half a second after their start. */
test("serve closes the inspector that Deno opens on SIGUSR1", {
  skip: !("Deno" in globalThis) || await isInspectable(),
}, () =>
  withInitialized(async (dir) => {
    const serving = await startServe(dir);
    const endMs = performance.now() + 3000;
    while (!await isInspectable() && performance.now() < endMs) {
      signalChild(serving.child, "SIGUSR1");
    }
    assert.equal((await post(serving, 1)).status, 200);
    while (await isInspectable()) { /* Until it is closed. */ }
    const { code, stderr } = await serving.stop();
    assert.equal(code, 0, stderr);
  }));

test("serve prints its counters on SIGUSR2 as one line of JSON", () =>
  withInitialized(async (dir) => {
    const serving = await startServe(dir);
    for (const n of [1, 1, 2]) await post(serving, n);
    await (await serving.fetch("/nowhere")).text();
    const following = new AbortController();
    await serving.fetch("/v1/events?follow=true", { signal: following.signal });
    signalChild(serving.child, "SIGUSR2");
    await untilReported(serving, "memory_bytes");
    following.abort();
    const { code, stderr } = await serving.stop();
    assert.equal(code, 0, stderr);
    const line = stderr.split("\n").find((line) => line.startsWith("{"));
    const { at, fsync_p50_ms, fsync_p99_ms, tail_bytes, memory_bytes, frontier, head, ...counts } =
      JSON.parse(
        line!,
      );
    assert.ok(!Number.isNaN(Date.parse(at)));
    assert.ok(0 < fsync_p50_ms && fsync_p50_ms <= fsync_p99_ms);
    assert.ok(tail_bytes > 0 && memory_bytes > 0);
    const verified = await runCli(["verify", "--config", join(dir, "service.toml")]);
    assert.match(verified.stderr, new RegExp(`through event ${frontier} of .* head ${head}\\n$`));
    assert.ok(counts.fsyncs >= 2);
    assert.deepEqual({ ...counts, fsyncs: null }, {
      batches: 2,
      events: 2,
      duplicates: 1,
      refusals: { not_found: 1 },
      fsyncs: null,
      followers: 1,
      log_events: 2,
      segments: 0,
      segment_bytes: 0,
      pending_files: 0,
    });
  }));

test("serve warns of directories that others can change, and of a token that they can read", () =>
  withInitialized(async (dir) => {
    const config = join(dir, "service.toml");
    const text = await readFile(config, "utf8");
    await writeFile(config, text.replace('token = ""', 'token = "secret-1"'));
    await chmod(config, 0o644);
    await chmod(join(dir, "data", "log"), 0o757);
    const serving = await startServe(dir);
    signalChild(serving.child, "SIGTERM");
    const { code, stderr } = await serving.exited;
    assert.equal(code, 0);
    assert.match(stderr, /service\.toml: holds a token, but has mode 0644; run chmod 600 on it/);
    assert.match(stderr, /data\/log: owned by .* with mode 0757/);
    assert.doesNotMatch(stderr, /secret-1/);
  }));
