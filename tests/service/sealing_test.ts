/** Sealing a log in use. Clients always get the same responses as without sealing. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { INDEX_FOLDER } from "../../src/log/storage/file_names.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { SealedHistory } from "../../src/log/segment/sealed_history.ts";
import { CommitFile } from "../../src/log/wal/commit_file.ts";
import { LogState } from "../../src/service/log_state.ts";
import { idAt } from "../support/event_ids.ts";
import { MixedHistory } from "../support/mixed_history.ts";
import { observe } from "../support/observation.ts";
import { statusOf } from "../support/outcome.ts";
import { SealingSteps, untilQuiet } from "../support/sealing_steps.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { replayAll } from "../support/stream_listing.ts";
import { submit, submittedBatch, submittedEvent } from "../support/submitted.ts";
import { openTestService } from "../support/test_service.ts";
import { verifyStorage } from "../support/verifying.ts";

async function openSealed(storage: SimulatedDisk = new SimulatedDisk()) {
  const steps = new SealingSteps();
  return { storage, steps, ...await openTestService(storage, steps.on()) };
}

/** Submits the history. @returns an observation after each part. */
async function play(steps: SealingSteps | null) {
  const history = new MixedHistory();
  let storage = new SimulatedDisk();
  const seen: Record<string, unknown>[] = [];
  for (const part of history.parts) {
    const { service } = await openTestService(storage, steps?.on());
    await part(service);
    await untilQuiet(storage);
    seen.push(await observe(service, history));
    await service.close();
    assert.equal(storage.openFiles, 0);
    storage = storage.crash();
  }
  return { seen, storage };
}

test("a log sealed while it is served returns the same responses as an unsealed one", async () => {
  const expected = (await play(null)).seen;
  const { seen, storage } = await play(new SealingSteps());
  for (const [part, answers] of seen.entries()) {
    for (const [question, answer] of Object.entries(answers)) {
      assert.deepEqual(answer, expected[part]![question], `after part ${part + 1}: ${question}`);
    }
  }
  const segments = [...storage.tree().keys()].filter((path) => path.endsWith(".parquet"));
  assert.ok(segments.length > 4, `${segments.length} segments`);
});

test("a batch is recognized at every step of its move to a segment", async () => {
  const { service, steps, storage } = await openSealed();
  const held = Promise.withResolvers<void>();
  steps.beforeMake = () => held.promise;
  for (const id of ["a", "b"]) await submit(service, submittedBatch("shop", id));
  const ask = async () => {
    const answers = await Promise.all([
      submit(service, submittedBatch("shop", "a")),
      submit(service, { ...submittedBatch("shop", "a"), events: [submittedEvent("other")] }),
      submit(service, submittedBatch("shop", "b")),
    ]);
    return answers.map((answer) => statusOf(answer) ?? answer.body.error);
  };
  const seen: unknown[] = [];
  let isAsking = false;
  // Sealing pauses before each of its operations while requests are answered.
  storage.hook = async () => {
    if (isAsking) return null;
    isAsking = true;
    seen.push(await ask());
    isAsking = false;
    return null;
  };
  held.resolve();
  await untilQuiet(storage);
  assert.ok(seen.length > 25, `${seen.length} moments`);
  for (const [moment, statuses] of seen.entries()) {
    assert.deepEqual(statuses, ["duplicate", "batch_id_conflict", "duplicate"], `${moment}`);
  }
  storage.hook = null;
  assert.equal((await replayAll(service)).length, 2);
  await service.close();
});

test("LogState finds a batch whose generation is sealed during the lookup", async () => {
  const entry = {
    source: "shop",
    batch_id: "a",
    batch_digest: "0".repeat(64),
    events: 1,
    first_event_id: idAt(1),
    last_event_id: idAt(1),
  } satisfies BatchEntry;
  const sealed = new SealedHistory(new SimulatedDisk());
  let known: BatchEntry | null = null;
  const looking = Promise.withResolvers<void>();
  sealed.findBatch = async () => {
    // Looks up the history at the time of the request.
    const found = known;
    await looking.promise;
    return found;
  };
  const file = await new SimulatedDisk().open("tail.ndjson", "create");
  const [pending, tail] = [new CommitFile("pending", file), new CommitFile("tail", file)];
  const log = { sealed, unsealed: [pending, tail] };
  const state = new LogState(log);
  pending.batches.add(entry);
  const before = state.findBatch("shop", "a");
  known = entry;
  log.unsealed = [tail];
  const after = state.findBatch("shop", "a");
  looking.resolve();
  assert.deepEqual([await before, await after], [entry, entry]);
});

test("a stopped writer refuses mutations at once, also while sealing is too far behind", async () => {
  const storage = new SimulatedDisk();
  const steps = new SealingSteps({ backlogWaitBytes: 1, backlogWaitMs: 1 });
  const held = Promise.withResolvers<void>();
  steps.beforeMake = () => held.promise;
  const { service } = await openTestService(storage, steps.on());
  await submit(service, submittedBatch("shop", "a"));
  storage.hook = ({ kind }) => kind === "write" && service.gate.isClosed ? { errno: "EIO" } : null;
  assert.equal(statusOf(await submit(service, submittedBatch("shop", "b"))), "writer_poisoned");
  assert.ok(service.gate.isClosed);
  const body = Buffer.from(JSON.stringify(submittedBatch("shop", "c")));
  await assert.rejects(service.ingest(body), { code: "writer_poisoned" });
  await assert.rejects(service.retire("shop"), { code: "writer_poisoned" });
  held.resolve();
  await service.close();
});

/** Commits that are sealed, each into a segment of its own, whose indexes are merged. */
const BATCHES = 70;

test("an index that a lookup finds damaged is made again, although nothing is sealed", async () => {
  let storage = new SimulatedDisk();
  const steps = new SealingSteps({ bounds: { events: 1, bytes: 1 } });
  let { service, reports } = await openTestService(storage, steps.on());
  const send = async (n: number) =>
    statusOf(await submit(service, submittedBatch("source", `batch-${n}`)));
  for (let n = 0; n < BATCHES; n++) {
    await send(n);
    await untilQuiet(storage);
  }
  await service.close();
  const tree = storage.tree();
  const path = [...tree.keys()].find((path) => path.startsWith("index/"))!;
  const intact = Buffer.from(tree.get(path)!);
  tree.set(path, intact.map((byte) => byte ^ 1));
  storage = new SimulatedDisk(tree);
  ({ service, reports } = await openTestService(storage, steps.on()));
  await untilQuiet(storage);
  for (let n = 0; n < BATCHES; n++) assert.equal(await send(n), "duplicate");
  await untilQuiet(storage);
  assert.equal(reports.length, 1);
  assert.deepEqual(Buffer.from(storage.contents(path)), intact);
  await service.close();
});

test("a batch whose only trace is in a merged index is a duplicate, also after restarts", async () => {
  let storage = new SimulatedDisk();
  const steps = new SealingSteps({ bounds: { events: 1, bytes: 1 } });
  let { service, reports } = await openTestService(storage, steps.on());
  const send = async (n: number) => {
    const answer = await submit(service, submittedBatch(`source-${n % 3}`, `batch-${n}`));
    return statusOf(answer);
  };
  for (let n = 0; n < BATCHES; n++) {
    assert.equal(await send(n), "committed");
    await untilQuiet(storage);
  }
  const indexes = (tree = storage.tree()) =>
    [...tree.keys()].filter((path) => path.startsWith("index/"));
  assert.deepEqual(indexes().map((path) => path.slice(0, 8)), ["index/2_"]);
  const durable = indexes(storage.crash().tree());
  assert.ok(indexes().every((path) => durable.includes(path)), "its name is durable");
  for (const restarts of [0, 1, 2]) {
    for (let n = 0; n < BATCHES; n++) assert.equal(await send(n), "duplicate");
    assert.deepEqual(reports, []);
    await service.close();
    const { report } = await verifyStorage(storage);
    assert.deepEqual([report.ok, report.events_checked], [true, BATCHES]);
    // The second restart finds no index and makes all of them again.
    const tree = storage.crash().tree();
    for (const path of restarts === 1 ? indexes() : []) tree.delete(path);
    storage = new SimulatedDisk(tree);
    ({ service, reports } = await openTestService(storage, steps.on()));
  }
  await untilQuiet(storage);
  assert.equal(indexes().length, 1);
  assert.ok(storage.tree().has(INDEX_FOLDER));
  await service.close();
});
