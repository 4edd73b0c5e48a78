/** `serve` when its socket path already exists. */
import assert from "node:assert/strict";
import { mkdirSync, unlinkSync } from "node:fs";
import { chmod, lstat, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { errorCode } from "../../src/log/storage/storage.ts";
import {
  type ServeOptions,
  type Serving,
  signalChild,
  spawnServe,
  untilPrinted,
  untilReady,
  untilReported,
} from "../../tools/support/program.ts";
import { batchWith } from "../contract/support/api.ts";
import { withDeployment } from "../support/deployment.ts";
import { skipLoudly } from "../faults/support/skip.ts";
import { RawConnection } from "../support/raw_client.ts";
import { UNPRIVILEGED, whyPrivileged } from "../support/unprivileged.ts";

async function listenOn(path: string): Promise<Server> {
  // Ignores errors, because a client that probes the socket disconnects before the response.
  const server = createServer((connection) => connection.on("error", () => {}).end("alive"));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

function answerOf(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect({ path }).setEncoding("utf8").on("data", (piece) => text += piece)
      .on("end", () => resolve(text)).on("error", reject);
  });
}

async function identityOf(path: string): Promise<string> {
  const { ino, mode, mtimeMs } = await lstat(path);
  return `${ino} ${mode} ${mtimeMs}`;
}

const OCCUPANTS: [name: string, make: (path: string) => Promise<unknown>][] = [
  ["a regular file", (path) => writeFile(path, "mine")],
  ["a directory", (path) => mkdir(path)],
  ["a dangling symlink", (path) => symlink("nowhere", path)],
  ["a symlink to a file", async (path) => {
    await writeFile(`${path}.target`, "mine");
    await symlink(`${path}.target`, path);
  }],
];

test("serve exits 1 if its socket path is not a socket, and keeps the file", async () => {
  for (const [name, make] of OCCUPANTS) {
    await withDeployment(async (deployment) => {
      const { socketPath: path } = deployment;
      await make(path);
      const before = await identityOf(path);
      const { code, stdout, stderr } = await deployment.run(["serve"]);
      assert.equal(code, 1, name);
      assert.equal(stdout, "");
      assert.match(stderr, /ground\.sock: exists and is not a socket/);
      assert.equal(await identityOf(path), before, name);
    });
  }
});

test("serve exits 1 if another process listens on its socket, and keeps the file", () =>
  withDeployment(async (deployment) => {
    const { socketPath: path } = deployment;
    const server = await listenOn(path);
    try {
      const before = await identityOf(path);
      const { code, stderr } = await deployment.run(["serve"]);
      assert.equal(code, 1);
      assert.match(stderr, /ground\.sock: another service is listening on this socket/);
      assert.equal(await identityOf(path), before);
      assert.equal(await answerOf(path), "alive");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  }));

test("serve exits 1 if it may not connect to its socket, and keeps the file", async (context) => {
  const reason = await whyPrivileged();
  if (reason !== null) return skipLoudly(context, reason);
  await withSocketOutside(async ({ socketPath, spawn }) => {
    const server = await listenOn(socketPath);
    try {
      await chmod(socketPath, 0);
      const before = await identityOf(socketPath);
      const { code, stderr } = await spawn({ wrapper: UNPRIVILEGED }).exited;
      assert.equal(code, 1);
      assert.match(stderr, /s\.sock: cannot determine whether a service is listening .*EACCES/);
      assert.equal(await identityOf(socketPath), before);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

test("serve exits 1 when the directory of its socket is missing", () =>
  withDeployment(async (deployment) => {
    await deployment.configure("data/ground.sock", "none/ground.sock");
    const { code, stderr } = await deployment.run(["serve"]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /none\/ground\.sock: cannot be bound: .*\/none: no such directory; create/,
    );
    assert.doesNotMatch(stderr, /EACCES|run as/);
  }));

interface Outside {
  /** The directory of the socket, outside the deployment. */
  run: string;
  socketPath: string;
  spawn: (options?: ServeOptions) => Serving;
}

/** Runs `use` with a deployment whose configuration has an absolute path for its socket. */
function withSocketOutside(use: (outside: Outside) => Promise<void>): Promise<void> {
  return withDeployment(async (deployment) => {
    const run = join(deployment.folder, "run");
    await mkdir(run);
    const socketPath = join(run, "s.sock");
    await deployment.configure("data/ground.sock", socketPath);
    const granted = ["--allow-read", "--allow-write", "--allow-sys"];
    const permissions = [...granted, `--allow-net=unix:${socketPath}`];
    const spawn = (options: ServeOptions = {}) =>
      spawnServe(deployment.dir, { socketPath, permissions, ...options });
    await use({ run, socketPath, spawn });
  });
}

test("serve gives the cause and the path when it may not bind its socket", async (context) => {
  const reason = await whyPrivileged();
  if (reason !== null) return skipLoudly(context, reason);
  await withSocketOutside(async ({ run, spawn }) => {
    await chmod(run, 0o500);
    const { code, stderr } = await spawn({ wrapper: UNPRIVILEGED }).exited;
    assert.equal(code, 1);
    assert.match(stderr, /run\/s\.sock: cannot be bound: .*EACCES.*run\/s\.sock; run as the user/);
  });
});

test("serve binds its socket again whenever the file is removed", () =>
  withSocketOutside(async ({ socketPath, spawn }) => {
    const serving = spawn();
    await untilReady(serving);
    const connection = await RawConnection.open(socketPath);
    const told = `${socketPath}: was removed; reopening the socket\n`;
    for (const removals of [1, 2]) {
      // On an old Deno, closing the former listener may remove the file first.
      await rm(socketPath, { force: true });
      await untilPrinted(serving, ({ stderr }) => stderr.split(told).length > removals);
      await untilReady(serving);
      await connection.write("GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n");
      assert.equal((await connection.readResponse())?.status, 200);
    }
    assert.equal((await serving.stop()).code, 0);
  }));

/** Connects once the service listens: bind(2) makes the file, which refuses until listen(2). */
async function openedOnceListening(socketPath: string): Promise<RawConnection> {
  for (;;) {
    try {
      return await RawConnection.open(socketPath);
    } catch (error) {
      const code = errorCode(error);
      if (code !== "ENOENT" && code !== "ECONNREFUSED") throw error;
      await setTimeout(1);
    }
  }
}

/** Regression: on Node, nothing kept a process without a socket running, so it exited with 13. */
test("serve keeps running while the directory of its socket is missing", () =>
  withSocketOutside(async ({ run, socketPath, spawn }) => {
    // Clients would keep the process running, so none is connected.
    const serving = spawn();
    await untilReported(serving, "serving ");
    const connection = await openedOnceListening(socketPath);
    await connection.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    await connection.ended();
    await rm(run, { recursive: true });
    await untilReported(serving, "was removed; reopening the socket\n");
    for (let lines = 1; lines <= 3; lines++) {
      signalChild(serving.child, "SIGUSR2");
      await untilPrinted(serving, ({ stderr }) => stderr.split('"batches"').length > lines);
    }
    await mkdir(run);
    await untilReady(serving);
    const { code, stderr } = await serving.stop();
    // While the directory is missing, binding fails and is retried.
    assert.deepEqual([code, stderr.split("was removed").length], [0, 2], stderr);
  }));

/** Regression: the socket file could not be removed, which skipped the graceful shutdown. */
test("serve completes a half-sent append when its socket's directory is not writable", (context) =>
  withSocketOutside(async ({ run, socketPath, spawn }) => {
    const reason = await whyPrivileged();
    if (reason !== null) return skipLoudly(context, reason);
    const serving = spawn({ wrapper: UNPRIVILEGED });
    await untilReady(serving);
    const connection = await RawConnection.open(socketPath);
    const body = JSON.stringify(batchWith({}));
    const head = `POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n`;
    await connection.write(`${head}Expect: 100-continue\r\n\r\n`);
    await connection.receive("HTTP/1.1 100 Continue\r\n\r\n".length);
    await chmod(run, 0o500);
    const exit = serving.stop();
    await untilReported(serving, "s.sock: the socket file cannot be removed: EACCES");
    await connection.write(body);
    assert.match((await connection.readResponse())!.body, /"committed"/);
    const { code, stderr } = await exit;
    await chmod(run, 0o700);
    assert.equal(code, 0, stderr);
  }));

test("serve exits 0 when it cannot keep what has replaced its socket", () =>
  withSocketOutside(async ({ socketPath, spawn }) => {
    const serving = spawn();
    await untilReady(serving);
    unlinkSync(socketPath);
    mkdirSync(socketPath);
    const { code, stderr } = await serving.stop();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /s\.sock: the socket file cannot be removed: .*link/);
    assert.ok((await lstat(socketPath)).isDirectory());
  }));
