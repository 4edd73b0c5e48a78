/** `sqlite_view` against a served deployment: its table matches the log despite kills. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { canonicalize, type CommittedEvent } from "../../mod.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";
import { GitRepository } from "./support/git_repository.ts";
import { type Spawned, untilPrinted } from "../../tools/support/program.ts";
import { runExample, startExample } from "./support/run_script.ts";
import { append, readLog } from "./support/served.ts";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";
import { readView, type ViewContents } from "./support/view.ts";

/** Events per transaction. It is small, so that there are many transactions to interrupt. */
const LIMIT = 5;

function viewArgs({ socketPath, folder }: Deployment, database: string): string[] {
  return ["--socket", socketPath, "--database", join(folder, database), "--limit", String(LIMIT)];
}

/** Brings a view up to date with the log and returns its contents. */
async function completeView(served: Deployment, database: string): Promise<ViewContents> {
  const args = [...viewArgs(served, database), "--once"];
  const { code, stderr } = await runExample("sqlite_view", args);
  assert.deepEqual([code, stderr], [0, ""]);
  return readView(join(served.folder, database));
}

/** Computes the expected view of a log independently of the example. */
function expectedView(log: CommittedEvent[]): ViewContents {
  const records = new Map<string, string>();
  for (const { source, stream, record_key, kind, payload } of log) {
    const key = `${source}/${stream}/${record_key}`;
    if (kind === "upserted") records.set(key, canonicalize(payload));
    if (kind === "deleted") records.delete(key);
  }
  return { position: log.at(-1)!.event_id, records: Object.fromEntries(records) };
}

async function importHistory(served: Deployment, commits: number): Promise<void> {
  const repository = new GitRepository(join(served.folder, "repository"));
  repository.setBranch("main", repository.grow(null, commits));
  const args = ["--socket", served.socketPath, "--repo", repository.path];
  const { code, stderr } = await runExample("git_history", args);
  assert.equal(code, 0, stderr);
}

/** Upserts and deletes a few records, so that each changes often. */
async function appendChanges(
  served: Deployment,
  batchId: string,
  random: SeededRandom,
): Promise<void> {
  const events = Array.from({ length: 20 }, (_, index) => ({
    stream: "items",
    record_key: `r${random.below(15)}`,
    kind: random.pick(["upserted", "upserted", "deleted", "reviewed"]),
    payload: { batchId, index },
  }));
  await append(served, batchId, events);
}

/** Waits until the view has committed `count` transactions or has exited. */
async function untilTransactions(view: Spawned, count: number): Promise<void> {
  await untilPrinted(view, ({ stdout }) => stdout.split("\n").length > count);
}

async function kill({ child, exited }: Spawned): Promise<void> {
  child.kill("SIGKILL");
  await exited;
}

test(`sqlite_view, killed at any time, equals one built from scratch (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  await withServing(async (served) => {
    await importHistory(served, 120);
    for (let round = 0; round < 6; round++) {
      await appendChanges(served, `b${round}`, random);
      const view = startExample("sqlite_view", viewArgs(served, "killed.db"));
      await untilTransactions(view, random.below(5));
      await kill(view);
    }
    const killed = await completeView(served, "killed.db");
    assert.deepEqual(killed, await completeView(served, "scratch.db"));
    assert.deepEqual(killed, expectedView(await readLog(served)));
  });
});

test("sqlite_view follows commits, even if the service is killed", async () => {
  await withServing(async (served) => {
    const random = new SeededRandom();
    await appendChanges(served, "b1", random);
    const view = startExample("sqlite_view", viewArgs(served, "view.db"));
    await untilTransactions(view, 20 / LIMIT);
    await appendChanges(served, "b2", random);
    await untilTransactions(view, 40 / LIMIT);
    await served.stop("SIGKILL");
    await served.start();
    await appendChanges(served, "b3", random);
    await untilTransactions(view, 60 / LIMIT);
    await kill(view);
    assert.match(view.output.stderr, /reconnecting/);
    const log = await readLog(served);
    assert.deepEqual(readView(join(served.folder, "view.db")), expectedView(log));
  });
});

test("sqlite_view reports invalid arguments", async () => {
  const { code, stderr } = await runExample("sqlite_view", ["only-a-socket"]);
  assert.equal(code, 2);
  assert.match(stderr, /a socket and a database are required\n\nusage/);
});
