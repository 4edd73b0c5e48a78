/** The `serve` command: readiness, shutdown and restart. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { access, chmod, lstat, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import process from "node:process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  runCli,
  signalChild,
  spawnScript,
  untilReady,
  untilReported,
} from "../../tools/support/program.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { openLog } from "../../src/log/log.ts";
import { allEvents } from "../contract/support/api.ts";
import { withDeployment, withServing } from "../support/deployment.ts";
import { preparedBatch } from "../support/prepared.ts";
import { RawConnection } from "../support/raw_client.ts";
import { realOptions } from "../support/test_log.ts";

const SERVE_WITH_CLOCK = fileURLToPath(new URL("../support/serve_with_clock.ts", import.meta.url));

/** A connection with a request whose body never arrives. */
async function openRequest(socketPath: string): Promise<RawConnection> {
  const connection = await RawConnection.open(socketPath);
  const head = ["POST /v1/events HTTP/1.1", "Host: x", "Content-Length: 1000"];
  await connection.write(`${[...head, "Expect: 100-continue"].join("\r\n")}\r\n\r\n`);
  // 100 Continue shows that the server is waiting for the body.
  await connection.receive("HTTP/1.1 100 Continue\r\n\r\n".length);
  await connection.write("{");
  return connection;
}

const TIMED_LINE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (.*)$/;

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  test(`serve exits 0 on ${signal}, and the next run returns its events`, () =>
    withServing(async (served) => {
      const { logDir, socketPath } = served;
      await served.append("1");
      const { stdout, stderr } = await served.stop(signal);
      assert.equal(stdout, "");
      // Standard error is neither a terminal nor the journal. The specification words one line.
      const lines = stderr.trimEnd().split("\n").map((line) =>
        line.startsWith("serving ") ? line : line.match(TIMED_LINE)?.[1]
      );
      const opened = "opened a log of 0 events; segments: 0, tail: 0 bytes";
      assert.deepEqual(lines, [opened, `serving ${socketPath}`, "shutting down"]);
      await assert.rejects(access(socketPath), "the socket is removed");
      await access(join(logDir, ".lock"));
      await served.assertContinues();
    }));
}

test("serve completes pending requests before it exits", () =>
  withServing(async (served) => {
    let acknowledged = 0;
    const pending = Array.from({ length: 200 }, async (_, number) => {
      const reply = await served.ingest(`${number}`).catch(() => null);
      if (reply?.status !== 200) return;
      if (++acknowledged === 1) signalChild(served.serving.child, "SIGTERM");
    });
    const [{ code, stderr }] = await Promise.all([served.serving.exited, ...pending]);
    assert.equal(code, 0, stderr);
    assert.ok(!stderr.includes("cut off"), stderr);
    await served.start();
    const kept = new Set((await allEvents(served.socketPath)).map(({ event_id }) => event_id));
    assert.ok(served.receipts.every(({ first_event_id }) => kept.has(first_event_id)));
    await served.stop();
  }));

test("serve exits 0 in bounded time when a client never finishes its request", () =>
  withServing(async (served) => {
    const connection = await openRequest(served.socketPath);
    await served.stop();
    connection.destroy();
    await served.assertContinues();
  }));

/** Makes V8's threads allocate memory continuously. */
const ASK_FLAG = "--stress-concurrent-allocation";
const ASKING = { nodeFlags: [ASK_FLAG], denoFlags: [`--v8-flags=${ASK_FLAG}`] };
/** Number of times the service is started and stopped. */
const TURNS = 3;

test("serve exits while runtime threads wait for memory, even on a second signal", () =>
  withDeployment(async (deployment) => {
    for (let turn = 0; turn < TURNS; turn++) {
      await deployment.start(ASKING);
      await deployment.stop();
      const serving = await deployment.start(ASKING);
      const connection = await openRequest(deployment.socketPath);
      signalChild(serving.child, "SIGTERM");
      await untilReported(serving, "shutting down");
      const { code, signal, stderr } = await serving.stop("SIGINT");
      assert.deepEqual([code, signal], [1, null], stderr);
      connection.destroy();
    }
  }));

test("serve locks out another serve and seal, while init accepts the deployment", () =>
  withServing(async (served) => {
    // The lock belongs to the file, not to its path.
    const link = join(served.folder, "link");
    await symlink(served.dir, link);
    for (
      const [command, dir] of [["serve", served.dir], ["serve", link], ["seal", link]] as const
    ) {
      const args = [command, "--config", join(dir, "service.toml")];
      const { code, stdout, stderr } = await runCli(args);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /\.lock: held by another process/);
      // Deno, with few permissions, cannot tell the holder.
      const canTell = THIS_RUNTIME === "node" && process.platform === "linux";
      const [, pid] = /\(pid (\d+)\)/.exec(stderr) ?? [];
      assert.equal(pid, canTell ? `${served.serving.child.pid}` : undefined, stderr);
    }
    assert.equal((await served.run(["init", served.dir])).code, 0);
    await served.append("the first one is unaffected");
    await served.stop();
    assert.equal((await served.run(["init", served.dir])).code, 0);
  }));

test("serve requires its token and never prints it", () =>
  withDeployment(async (deployment) => {
    await deployment.configure('token = ""', 'token = "s3cret"');
    const { fetch } = await deployment.start();
    assert.equal((await fetch("/v1/events")).status, 401);
    const headers = { authorization: "Bearer s3cret" };
    assert.equal((await fetch("/v1/events", { headers })).status, 200);
    const { stderr } = await deployment.stop();
    assert.ok(!stderr.includes("s3cret"));
  }));

test("serve creates only its own files, accessible only to their owner, whatever the umask", () =>
  withServing(async (served) => {
    await served.append("1");
    assert.equal((await lstat(served.socketPath)).mode & 0o777, 0o600);
    await served.stop();
    assert.deepEqual(await readdir(served.dir), ["data", "service.toml"]);
    assert.deepEqual(await readdir(join(served.dir, "data")), ["log"]);
    for (const name of [".lock", "manifest.json", "tail.ndjson"]) {
      assert.equal((await lstat(join(served.logDir, name))).mode & 0o077, 0, name);
    }
  }, { wrapper: ["sh", "-c", 'umask 0 && exec "$0" "$@"'] }));

test("serve omits timestamps when standard error is the journal", {
  skip: process.platform === "linux" ? false : "systemd runs only on Linux",
}, () =>
  withDeployment(async (deployment) => {
    // Like systemd, sets JOURNAL_STREAM to the device and inode of standard error.
    const script = 'export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) && exec "$0" "$@"';
    await deployment.start({
      wrapper: ["sh", "-c", script],
      permissions: [
        "--allow-read",
        "--allow-write",
        "--allow-sys",
        "--allow-net",
        "--allow-env=JOURNAL_STREAM",
      ],
    });
    const { stderr } = await deployment.stop();
    assert.match(stderr, /^opened a log of 0 events;.*\nserving .*\nshutting down\n$/);
  }));

test("serve reports once, at its start, that the clock is behind the last event", () =>
  withDeployment(async (deployment) => {
    const aheadMs = 7_200_000;
    const clockMs = () => Date.now() + aheadMs;
    const log = await openLog({ ...realOptions(deployment.logDir), clockMs });
    await log.append([preparedBatch("1")]);
    await log.close();
    await deployment.start();
    await deployment.append("2");
    const { stderr } = await deployment.stop();
    const told = stderr.match(
      /the clock is \d+ s behind the last event \S+; .* check the clock\n/g,
    );
    assert.equal(told?.length, 1, stderr);
  }));

test("serve reports a jump of the clock, and after a commit that the clock is behind it", () =>
  withDeployment(async (deployment) => {
    const { configPath, folder, socketPath } = deployment;
    const aheadPath = join(folder, "ahead");
    const setAhead = async (ms: number) => {
      await writeFile(`${aheadPath}.new`, `${ms}`);
      await rename(`${aheadPath}.new`, aheadPath);
    };
    await setAhead(7_200_000);
    const spawned = spawnScript(SERVE_WITH_CLOCK, [configPath, aheadPath]);
    await untilReady({ ...spawned, fetch: unixFetch(socketPath) });
    await deployment.append("1");
    await setAhead(0);
    await untilReported(spawned, "the clock jumped by -7200 s\n");
    await deployment.append("2");
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
  withServing(async (served) => {
    signalChild(served.serving.child, "SIGUSR1");
    signalChild(served.serving.child, "SIGUSR2");
    await untilReported(served.serving, "memory_bytes");
    await served.append("1");
    const { stderr } = await served.stop();
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
  withServing(async (served) => {
    const endMs = performance.now() + 3000;
    while (!await isInspectable() && performance.now() < endMs) {
      signalChild(served.serving.child, "SIGUSR1");
    }
    await served.append("1");
    while (await isInspectable()) { /* Until it is closed. */ }
    await served.stop();
  }));

test("serve prints its counters on SIGUSR2 as one line of JSON", () =>
  withServing(async (served) => {
    const { fetch } = served.serving;
    for (const batchId of ["1", "1", "2"]) await served.append(batchId);
    for (const method of ["GET", "HEAD"]) await (await fetch("/nowhere", { method })).text();
    const following = new AbortController();
    await fetch("/v1/events?follow=true", { signal: following.signal });
    signalChild(served.serving.child, "SIGUSR2");
    await untilReported(served.serving, "memory_bytes");
    following.abort();
    const { stderr } = await served.stop();
    const line = stderr.split("\n").find((line) => line.startsWith("{"))!;
    const { at, fsync_p50_ms, fsync_p99_ms, tail_bytes, memory_bytes, ...others } = JSON.parse(
      line,
    );
    assert.ok(!Number.isNaN(Date.parse(at)));
    assert.ok(0 < fsync_p50_ms && fsync_p50_ms <= fsync_p99_ms);
    assert.ok(tail_bytes > 0 && memory_bytes > 0);
    const { fsyncs, frontier, head, ...counts } = others;
    const verified = await served.run(["verify"]);
    assert.match(verified.stderr, new RegExp(`through event ${frontier} of .* head ${head}\\n$`));
    assert.ok(fsyncs >= 2);
    assert.deepEqual(counts, {
      batches: 2,
      events: 2,
      duplicates: 1,
      refusals: { not_found: 2 },
      followers: 1,
      log_events: 2,
      segments: 0,
      segment_bytes: 0,
      pending_files: 0,
    });
  }));

test("serve warns of directories that others can change, and of a token that they can read", () =>
  withDeployment(async (deployment) => {
    await deployment.configure('token = ""', 'token = "secret-1"');
    await chmod(deployment.configPath, 0o644);
    await chmod(deployment.logDir, 0o757);
    await deployment.start();
    const { stderr } = await deployment.stop();
    assert.match(stderr, /service\.toml: holds a token, but has mode 0644; run chmod 600 on it/);
    assert.match(stderr, /data\/log: owned by .* with mode 0757/);
    assert.doesNotMatch(stderr, /secret-1/);
  }));
