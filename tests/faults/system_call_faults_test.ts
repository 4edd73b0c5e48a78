/**
 * The real `serve` while system calls on its tail fail. A full disk stops only the failed commit,
 * any other failure stops the writer, and an interrupted call is retried. Nothing is acknowledged
 * before it is durable, and a restart returns everything acknowledged. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { allEvents, assertError, batchWith, ingest } from "../contract/support/api.ts";
import { type Deployment, withServing } from "../support/deployment.ts";
import type { HttpReply } from "../support/http_client.ts";
import { attachStrace, testTraced } from "./support/strace.ts";

const WRITES = "write,writev,pwrite64,pwritev,pwritev2";

/** System calls, and a fault for each in the syntax of strace: `error=` and an errno name. */
type Faults = [calls: string, fault: string][];

const NO_ROOM: Faults[] = ["ENOSPC", "EDQUOT", "EFBIG"].map((name) => [[WRITES, `error=${name}`]]);

const UNCERTAIN: [title: string, faults: Faults][] = [
  ["a failed write", [[WRITES, "error=EIO"]]],
  ["a write to a read-only disk", [[WRITES, "error=EROFS"]]],
  ["a failed fdatasync", [["fdatasync,fsync", "error=EIO"]]],
  ["an fdatasync that runs out of space", [["fdatasync,fsync", "error=ENOSPC"]]],
  ["a full disk and a failed rollback", [[WRITES, "error=ENOSPC"], ["ftruncate", "error=EIO"]]],
  [
    "a full disk and a failed fdatasync of the rollback",
    [[WRITES, "error=ENOSPC"], ["fdatasync,fsync", "error=EIO"]],
  ],
];

/** Ingests a batch while system calls fail. @returns the reply. */
async function appendUnder(
  deployment: Deployment,
  faults: Faults,
  batchId: string,
): Promise<HttpReply> {
  let reply: HttpReply | undefined;
  await withFaults(deployment, faults, async () => {
    reply = await ingest(deployment.socketPath, batchWith({ batch_id: batchId }));
  });
  return reply!;
}

/** Runs `use` while calls on the tail fail, and asserts that every fault was injected. */
async function withFaults(
  { folder, logDir, serving }: Deployment,
  faults: Faults,
  use: () => Promise<void>,
): Promise<void> {
  const traced = faults.map(([calls]) => calls).join(",");
  const injected = faults.flatMap(([calls, fault]) => ["-e", `inject=${calls}:${fault}`]);
  const tailPath = join(logDir, "tail.ndjson");
  const args = ["-e", `trace=${traced}`, ...injected, "-P", tailPath];
  const tracer = await attachStrace(serving.child.pid!, folder, args);
  let lines: string[] = [];
  try {
    await use();
  } finally {
    lines = await tracer.stop();
  }
  for (const [calls] of faults) {
    const isStruck = lines.some((line) =>
      line.includes("(INJECTED)") && calls.split(",").some((call) => line.includes(`${call}(`))
    );
    assert.ok(isStruck, `${calls} was injected: ${lines.join("\n")}`);
  }
}

/** Starts a service with one batch, and a follower that has received it. */
function withStruckService(
  use: (deployment: Deployment, follower: FollowReader) => Promise<void>,
): Promise<void> {
  return withServing(async (deployment) => {
    await deployment.append("before");
    const follower = await FollowReader.open(deployment.socketPath);
    await follower.catchUp();
    await use(deployment, follower);
  });
}

const NO_ROOM_TITLE =
  "serve returns storage_full when a write has no space; it and its followers continue";
testTraced(NO_ROOM_TITLE, () =>
  withStruckService(async (deployment, follower) => {
    for (const [number, faults] of NO_ROOM.entries()) {
      assertError(await appendUnder(deployment, faults, "struck"), "storage_full");
      await deployment.assertShows();
      await deployment.append(`after ${number}`);
      assert.equal((await follower.takeLive(1))[0]!.batch_id, `after ${number}`);
    }
    await deployment.stop("SIGKILL");
    await deployment.start();
    await deployment.assertShows();
    await deployment.append("struck");
    await deployment.stop();
  }));

for (const [title, faults] of UNCERTAIN) {
  const stopTitle = `serve stops its writer on ${title}; a restart returns everything acknowledged`;
  testTraced(stopTitle, () =>
    withStruckService(async (deployment, follower) => {
      const { socketPath, receipts } = deployment;
      assertError(await appendUnder(deployment, faults, "struck"), "writer_poisoned");
      assertError(await ingest(socketPath, batchWith({ batch_id: "after" })), "writer_poisoned");
      await deployment.assertShows();
      assert.equal((await follower.nextOf("end")).reason, "writer_poisoned");
      await deployment.stop();
      await deployment.start();
      const others = await allEvents(socketPath);
      const acknowledged = others.splice(0, 1).map(({ event_id }) => event_id);
      assert.deepEqual(acknowledged, receipts.map(({ first_event_id }) => first_event_id));
      const isThere = others.length > 0;
      if (isThere) assert.deepEqual(others.map(({ batch_id }) => batch_id), ["struck"]);
      const retried = await ingest(socketPath, batchWith({ batch_id: "struck" }));
      assert.equal(retried.json().status, isThere ? "duplicate" : "committed");
      await deployment.stop();
    }));
}

/** Calls on the tail. A signal interrupts the first one in each thread. */
const INTERRUPTED: [title: string, calls: string][] = [
  ["write", WRITES],
  ["read", "read,readv,pread64,preadv"],
  ["fdatasync", "fdatasync"],
];

for (const [title, calls] of INTERRUPTED) {
  // Regression: under Deno, an interrupted write stopped the writer and a read failed with 500.
  testTraced(`serve retries a ${title} interrupted by a signal`, async () => {
    await withStruckService(async (deployment) => {
      // Restarts, because only data from an earlier process is read from the disk.
      await deployment.stop();
      await deployment.start();
      await withFaults(deployment, [[calls, "error=EINTR:when=1"]], async () => {
        await deployment.append("after");
        await deployment.assertShows();
      });
      await deployment.stop();
    });
  });
}
