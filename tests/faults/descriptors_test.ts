/**
 * The real service without free descriptors. With more clients than descriptors, connected clients
 * are still served, and new ones are served once others disconnect. A rotation that cannot open
 * its files leaves the tail as it is. Such a startup or seal fails and leaves the log intact.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { PENDING_FOLDER, SEGMENTS_FOLDER } from "../../src/log/storage/file_names.ts";
import { batchWith, replayPage } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import {
  type CliOptions,
  isRunning,
  signalChild,
  spawnCli,
  untilReported,
  withFolder,
} from "../../tools/support/program.ts";
import { withServing } from "../support/deployment.ts";
import { RawConnection } from "../support/raw_client.ts";
import type { RawResponse } from "../support/raw_response.ts";
import { rotateOnly } from "../support/sealing.ts";
import { appendTo } from "../support/test_log.ts";
import { assertWhole, configOf, makeWhole, WHOLE_EVENTS } from "./support/hostile_deployment.ts";
import { skipLoudly } from "./support/skip.ts";

const OPEN_FILES_MAX = 64;
/** Number of clients, which exceeds the number of descriptors. */
const CROWD = 100;
/** A limit that suffices for everything in the test that lowers it. */
const OPEN_FILES_ENOUGH = 256;
const WRITERS = 4;
const POLL_MS = 5;
const GET_STREAMS = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";
/** Pending files stay open. They need more descriptors than taking the lock. */
const PENDING_FILES = 12;
/** Initial descriptor limit, lowered until FAILURES runs have failed, each at an earlier step. */
const LIMIT_FIRST = 42;
const FAILURES = 5;

/** Limits open files with a shell, since neither runtime can set a child's limits. */
function limited(openFilesMax: number): CliOptions {
  return { wrapper: ["sh", "-c", `ulimit -n ${openFilesMax} && exec "$0" "$@"`] };
}

/** Sends a request on a connection that stays open. */
async function answerTo(connection: RawConnection, bytes: string): Promise<RawResponse> {
  await connection.write(bytes);
  const response = await connection.readResponse();
  assert.ok(response !== null, "the connection stays open");
  return response;
}

function ingestOn(connection: RawConnection, batchId: string, payload: string) {
  const body = JSON.stringify(batchWith({
    batch_id: batchId,
    events: [{ stream: "orders", record_key: batchId, kind: "upserted", payload }],
  }));
  const head = `POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
  return answerTo(connection, head + body);
}

/** Connects until the service answers. Beyond its limit, it may close connections at first. */
async function connected(socketPath: string): Promise<RawConnection> {
  for (;;) {
    const connection = await RawConnection.open(socketPath).catch(() => null);
    await connection?.write(GET_STREAMS);
    if ((await connection?.readResponse())?.status === 200) return connection!;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

test("serve keeps serving when descriptors run out, also new clients", () =>
  withServing(async (deployment) => {
    const { socketPath, receipts } = deployment;
    await deployment.append("sealed");
    await deployment.seal();

    await deployment.start(limited(OPEN_FILES_MAX));
    const follower = await FollowReader.open(socketPath);
    assert.equal((await follower.catchUp()).length, receipts.length);

    // The clients send nothing, and none of them disconnects.
    const crowd: RawConnection[] = [];
    while (crowd.length < CROWD) {
      const connection = await RawConnection.open(socketPath).catch(() => null);
      if (connection !== null) crowd.push(connection);
    }
    const inside: RawConnection[] = [];
    while (inside.length < WRITERS) inside.push(await connected(socketPath));
    for (const payload of ["", "x".repeat(100_000), "x".repeat(3_000_000)]) {
      const writes = inside.map((connection, writer) =>
        ingestOn(connection, `${writer}-${payload.length}`, payload)
      );
      for (const { status, body } of await Promise.all(writes)) {
        assert.equal(status, 200, body);
        receipts.push(JSON.parse(body));
      }
    }
    const page = await answerTo(inside[0]!, GET_STREAMS.replace("streams", "events"));
    const { events } = JSON.parse(page.body);
    assert.equal(events.length, receipts.length, "segment and tail are readable");
    assert.equal((await follower.takeLive(3 * WRITERS)).length, 3 * WRITERS);

    for (const other of [...crowd, ...inside]) other.destroy();
    // The service may first close the connections in its backlog.
    while (await replayPage(socketPath).catch(() => null) === null);
    await deployment.append("new");
    follower.close();
    await deployment.stop();
    await deployment.assertContinues();
  }));

/** The limit under which a process can open `free` more files. */
function limitFor(pid: number, free: number): number {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let limit = 0;
  for (let left = free; left > 0 || used.has(limit); limit++) if (!used.has(limit)) left -= 1;
  return limit;
}

function setLimit(pid: number, limit: number): void {
  assert.equal(spawnSync("prlimit", [`--pid=${pid}`, `--nofile=${limit}:`]).status, 0);
}

const FOLLOW = "GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\n\r\n";

test("serve takes as many clients as before once descriptors are free again", (context) => {
  const { error } = spawnSync("prlimit", ["--version"]);
  if (error !== undefined) return skipLoudly(context, `cannot run prlimit: ${error.message}`);
  return withServing(async ({ socketPath, serving: { child } }) => {
    /** Returns how many of a crowd are served. */
    const served = async () => {
      const open = () => RawConnection.open(socketPath, FOLLOW);
      const clients = await Promise.all(Array.from({ length: CROWD }, open));
      for (const client of clients) await client.receive(1);
      for (const client of clients) client.destroy();
      return clients.filter(({ received }) => received.length > 0).length;
    };
    setLimit(child.pid!, limitFor(child.pid!, OPEN_FILES_MAX));
    assert.ok(await served() < CROWD);
    setLimit(child.pid!, OPEN_FILES_ENOUGH);
    assert.equal(await served(), CROWD);
  }, limited(OPEN_FILES_ENOUGH));
});

/** Number of descriptors with which the last test starts. It leaves one less in each round. */
const FREE_FIRST = 8;
const ROTATE_BYTES = 64 * 1024;
/** A payload of which a few make the tail rotate. A larger one would take another thread. */
const PAYLOAD = "x".repeat(12_000);
const BATCHES_PER_ROUND = 8;

test("serve with few free descriptors rotates its tail or keeps it, and its writer never stops", (context) => {
  const { error } = spawnSync("prlimit", ["--version"]);
  if (error !== undefined) return skipLoudly(context, `cannot run prlimit: ${error.message}`);
  return withServing(async (deployment) => {
    const { socketPath, logDir, receipts, serving } = deployment;
    const pid = serving.child.pid!;
    const pending = () => readdirSync(join(logDir, PENDING_FOLDER));
    const files = () => [...pending(), ...readdirSync(join(logDir, SEGMENTS_FOLDER))].length;
    const crowd: RawConnection[] = [];
    while (crowd.length < WRITERS) crowd.push(await connected(socketPath));
    const settled = async () => {
      while (pending().length > 0 && isRunning(serving)) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    };
    const append = async (batchId: string) => {
      const { status, body } = await ingestOn(crowd[0]!, batchId, PAYLOAD);
      assert.ok(status === 200 || status === 500, `${batchId}: ${status} ${body}`);
      if (status === 200) receipts.push(JSON.parse(body));
    };
    // Deno panics if a thread starts without descriptors, so all threads start before.
    const indexes = () =>
      readdirSync(logDir, { recursive: true }).filter((name) => `${name}`.endsWith(".index"));
    while (indexes().length === 0) {
      await append(`${receipts.length}`);
      await settled();
    }
    await deployment.assertShows();

    let rotations = 0;
    for (let free = FREE_FIRST; free >= 0; free--) {
      const before = files();
      setLimit(pid, limitFor(pid, free));
      for (let number = 0; number < BATCHES_PER_ROUND; number++) {
        await append(`${free} free, ${number}`);
      }
      rotations += Number(files() > before);
      setLimit(pid, OPEN_FILES_ENOUGH);
      await deployment.append(`after ${free}`);
      await settled();
    }
    for (const connection of crowd) connection.destroy();
    const { stderr } = await deployment.stop();
    assert.ok(rotations > 0, stderr);
    assert.match(stderr, /tail\.ndjson: not rotated, .*EMFILE.*; raise the limit on open files\n/);
    await deployment.assertContinues();
  }, { rotateBytes: ROTATE_BYTES, ...limited(OPEN_FILES_ENOUGH) });
});

/** Runs a command under a limit. Returns null if it succeeded, else what it said. */
async function faultOf(name: string, dir: string, openFilesMax: number): Promise<string | null> {
  const spawned = spawnCli([name, "--config", configOf(dir)], limited(openFilesMax));
  if (name === "serve") {
    // It may have no descriptors left for a client.
    await untilReported(spawned, "serving ").catch(() => {});
    if (spawned.output.stderr.includes("serving ")) signalChild(spawned.child, "SIGTERM");
  }
  const { code, stderr } = await spawned.exited;
  assert.ok(code === 0 || code === 1, stderr);
  return code === 0 ? null : stderr;
}

for (const name of ["seal", "serve"]) {
  test(`${name} without enough descriptors for its files fails and leaves the log intact`, () =>
    withFolder(async (folder) => {
      const { dir: full } = await makeWhole(join(folder, "full"));
      const storage = fileStorage(join(full, "data", "log"));
      for (let files = 0; files < PENDING_FILES; files++) {
        await appendTo(storage, `${files}`);
        await rotateOnly(storage);
      }
      const faults: string[] = [];
      for (let limit = LIMIT_FIRST; faults.length < FAILURES; limit--) {
        const dir = join(folder, `${limit}`);
        await cp(full, dir, { recursive: true });
        const fault = await faultOf(name, dir, limit);
        if (fault !== null) faults.push(fault);
        await assertWhole(dir, WHOLE_EVENTS + PENDING_FILES);
      }
      const inLog = faults.filter((fault) => /EMFILE.*\/(segments|pending|tail)/.test(fault));
      assert.ok(inLog.length > 0, `some failures name a file in the log: ${faults}`);
    }));
}
