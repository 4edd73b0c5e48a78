/**
 * The real service without free descriptors. With more clients than descriptors, connected clients
 * are still served, and new ones are served once others disconnect. A startup or seal that cannot
 * open its files fails and leaves the log intact.
 */
import assert from "node:assert/strict";
import { cp, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Receipt } from "../../src/event/types.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { pendingPath, TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { type Log, openLog } from "../../src/log/log.ts";
import { verifyLog } from "../../src/log/verify/verify.ts";
import { batchWith, replayPage } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import {
  runCli,
  signalChild,
  spawnCli,
  type Spawned,
  untilReported,
  withFolder,
} from "../../tools/support/program.ts";
import { withServing } from "../support/deployment.ts";
import { preparedBatch } from "../support/prepared.ts";
import { RawConnection } from "../support/raw_client.ts";
import { SMALL_SEGMENTS } from "../support/sealing.ts";
import { testTime } from "../support/test_log.ts";

const OPEN_FILES_MAX = 64;
/** Number of clients, which exceeds the number of descriptors. */
const CROWD = 100;
const WRITERS = 4;
const POLL_MS = 5;
const GET_STREAMS = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";
/** Numbers of files in the second test's log. Pending files stay open, but segments do not. */
const SEGMENTS = 3;
const PENDING_FILES = 12;
/** Initial descriptor limit, lowered until FAILURES runs have failed, each at an earlier step. */
const LIMIT_FIRST = 42;
const FAILURES = 5;

function config(dir: string): string[] {
  return ["--config", join(dir, "service.toml")];
}

/** Sends a request on a connection that stays open. @returns the response, which must be 200. */
async function answerTo(connection: RawConnection, bytes: string): Promise<string> {
  await connection.write(bytes);
  const response = await connection.readResponse();
  assert.equal(response?.status, 200, response?.body);
  return response.body;
}

async function ingestOn(connection: RawConnection, batchId: string, payload: string) {
  const body = JSON.stringify(batchWith({
    batch_id: batchId,
    events: [{ stream: "orders", record_key: batchId, kind: "upserted", payload }],
  }));
  const head = `POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
  return JSON.parse(await answerTo(connection, head + body)) as Receipt;
}

async function verifiedEvents(dir: string): Promise<number> {
  const storage = fileStorage(join(dir, "data", "log"));
  const { report, failure } = await verifyLog(storage, { chain: true });
  assert.equal(failure, null);
  return report.events_checked;
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
    const { dir, socketPath } = deployment;
    const { receipts } = deployment;
    await deployment.append("sealed");
    await deployment.seal();

    await deployment.start({ openFilesMax: OPEN_FILES_MAX });
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
      receipts.push(...await Promise.all(writes));
    }
    const page = await answerTo(inside[0]!, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.equal(JSON.parse(page).events.length, receipts.length, "segment and tail are readable");
    assert.equal((await follower.takeLive(3 * WRITERS)).length, 3 * WRITERS);

    for (const other of [...crowd, ...inside]) other.destroy();
    // The service may first close the connections in its backlog.
    while (await replayPage(socketPath).catch(() => null) === null);
    await deployment.append("new");
    follower.close();
    await deployment.stop();
    assert.equal(await verifiedEvents(dir), receipts.length);
    await deployment.assertContinues();
  }));

/** Fills a deployment with segments, pending files and a tail. @returns the number of events. */
async function fill(dir: string): Promise<number> {
  const folder = join(dir, "data", "log");
  const open = () => openLog({ ...testTime(), storage: fileStorage(folder), report() {} });
  let batches = 0;
  const append = async (log: Log) => {
    const [committed] = await log.append([preparedBatch(`batch ${batches++}`)]);
    return committed!.last_event_id;
  };
  const log = await open();
  let segments = 0;
  while (batches < SEGMENTS * SMALL_SEGMENTS.events) await append(log);
  await log.seal(() => void segments++, { bounds: SMALL_SEGMENTS });
  assert.ok(segments >= SEGMENTS, `${segments} segments`);
  await log.close();
  for (let files = 0; files < PENDING_FILES; files++) {
    const rotated = await open();
    const id = await append(rotated);
    await rotated.close();
    await rename(join(folder, TAIL_FILE), join(folder, pendingPath(id, id)));
    await writeFile(join(folder, TAIL_FILE), "");
  }
  const last = await open();
  await append(last);
  await last.close();
  return batches;
}

/** Runs a command. @returns its error, or null if it succeeded. */
type Run = (dir: string, openFilesMax: number) => Promise<string | null>;

function runSeal(dir: string, openFilesMax: number): Promise<string | null> {
  return faultOf(spawnCli([...config(dir), "seal"], { openFilesMax }));
}

/** Stops `serve` once it has opened the log, as it may have no descriptors left for a client. */
async function runServe(dir: string, openFilesMax: number): Promise<string | null> {
  const spawned = spawnCli([...config(dir), "serve"], { openFilesMax });
  await untilReported(spawned, "serving ").catch(() => {});
  if (spawned.output.stderr.includes("serving ")) signalChild(spawned.child, "SIGTERM");
  return await faultOf(spawned);
}

async function faultOf({ exited }: Spawned): Promise<string | null> {
  const { code, stderr } = await exited;
  assert.ok(code === 0 || code === 1, stderr);
  return code === 0 ? null : stderr;
}

for (const [name, run] of [["seal", runSeal], ["serve", runServe]] satisfies [string, Run][]) {
  test(`${name} without enough descriptors for its files fails and leaves the log intact`, () =>
    withFolder(async (folder) => {
      const full = join(folder, "full");
      assert.equal((await runCli(["init", full])).code, 0);
      const events = await fill(full);
      const faults: string[] = [];
      for (let limit = LIMIT_FIRST; faults.length < FAILURES; limit--) {
        const dir = join(folder, `${limit}`);
        await cp(full, dir, { recursive: true });
        const fault = await run(dir, limit);
        if (fault !== null) faults.push(fault);
        assert.equal(await verifiedEvents(dir), events, `after ${name} with ${limit} descriptors`);
      }
      const inLog = faults.filter((fault) => /EMFILE.*\/(segments|pending|tail)/.test(fault));
      assert.ok(inLog.length > 0, `some failures name a file in the log: ${faults}`);
    }));
}
