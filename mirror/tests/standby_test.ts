/** `standby` under load, and its promotion after the service is lost. */
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Receipt } from "../../mod.ts";
import { allEvents } from "../../tests/contract/support/api.ts";
import { signalChild, untilReported } from "../../tools/support/program.ts";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import {
  appendPayloads,
  end,
  headIn,
  type Mirrored,
  pushAll,
  refusalOf,
  runMirror,
  startMirror,
  startPush,
  testWithNats,
  withRestored,
} from "./support/mirrored.ts";
import { pause, readStream, untilSequence } from "./support/nats_stream.ts";

const seed = testSeed();
const CLIENTS = 4;
/** Number of messages after which the service is killed. */
const LOST_AT = 2000;
const BATCH_EVENTS_MAX = 40;
const ONCE = { attemptsMax: 1 };

/** Appends until the service is killed. @returns each batch, and its receipt if it got one. */
async function appendUntilLost(mirrored: Mirrored, client: number, random: () => number) {
  const receipts = new Map<string, { payloads: number[]; receipt: Receipt | null }>();
  for (let batch = 0;; batch++) {
    const payloads = Array.from({ length: randomInteger(random, 1, BATCH_EVENTS_MAX) }, random);
    const known = { payloads, receipt: null as Receipt | null };
    receipts.set(`c${client}/${batch}`, known);
    try {
      known.receipt = await appendPayloads(mirrored, `c${client}/${batch}`, payloads, ONCE);
    } catch {
      return receipts;
    }
  }
}

testWithNats(`standby is promoted under load (SEED=${seed})`, async (mirrored) => {
  const random = seededRandom(seed);
  const { served, nats } = mirrored;
  const pusher = startPush(mirrored);
  await untilSequence(nats, 0, pusher);
  const dir = join(served.folder, "standby");
  await pushAll(mirrored);
  const follow = ["--nats", nats.url, dir];
  const standby = startMirror(["standby", ...follow]);
  const clients = Array.from({ length: CLIENTS }, (_, client) => client);
  const appending = clients.map((client) => appendUntilLost(mirrored, client, random));
  await untilSequence(nats, LOST_AT, pusher);
  const tail = join(dir, "data", "log", "tail.ndjson");
  while (await stat(tail).then(({ size }) => size === 0, () => true)) await pause();
  await served.stop("SIGKILL");
  await end(pusher, "SIGKILL");
  const appended = (await Promise.all(appending)).flatMap((receipts) => [...receipts]);

  assert.equal(await end(standby, "SIGTERM"), 0);
  // It exits with 1 if the pusher had read events that it could not push any more.
  const { stderr: told } = await startMirror(["restore", ...follow]).exited;
  assert.match(told, /^(the log ends with event|the stream is incomplete)/m);
  const pushed = new Set((await readStream(nats)).map(({ id }) => id));
  await withRestored(served.folder, dir, async (promoted) => {
    await promoted.start();
    const other = { nats, served: promoted };
    for (const [batchId, { payloads, receipt }] of appended) {
      const repeated = await appendPayloads(other, batchId, payloads);
      if (receipt === null || !pushed.has(receipt.last_event_id)) continue;
      assert.deepEqual(repeated, { ...receipt, status: "duplicate" });
    }
    const events = await allEvents(promoted.socketPath);
    const batches = events.filter(({ batch_id }, n) => batch_id !== events[n - 1]?.batch_id);
    assert.equal(batches.length, appended.length);
    assert.deepEqual(
      new Set(batches.map(({ batch_id }) => batch_id)),
      new Set(appended.map(([batchId]) => batchId)),
    );

    await pushAll(other);
    await served.start();
    await appendPayloads(mirrored, "late", [1]);
    const push = ["push", "--socket", served.socketPath, "--nats", nats.url];
    assert.match(await refusalOf(push), /is not in this log; the last event in both is/);
    const again = join(served.folder, "again");
    const { stderr } = await runMirror(["restore", "--nats", nats.url, again]);
    await promoted.stop();
    const { stderr: sealed } = await promoted.run(["seal"]);
    assert.equal(headIn(stderr), headIn(sealed));
  });
});

testWithNats("standby waits for the stream, and survives a restart of NATS", async (mirrored) => {
  const { served, nats } = mirrored;
  const dir = join(served.folder, "standby");
  const follow = ["standby", "--nats", nats.url, dir];
  assert.match(await refusalOf([...follow, "--once"]), /^stream ground does not exist; run push/);
  const standby = startMirror(follow);
  await untilReported(standby, "does not exist");
  await pushAll(mirrored);
  await runMirror([...follow.slice(0, -1), join(served.folder, "other"), "--once"]);
  await appendPayloads(mirrored, "b1", [1, 2]);
  await pushAll(mirrored);
  await nats.stop();
  await untilReported(standby, "reconnecting");
  await nats.start();
  const { last_event_id } = await appendPayloads(mirrored, "b2", [3]);
  await pushAll(mirrored);
  signalChild(standby.child, "SIGTERM");
  await standby.exited;
  await runMirror([...follow, "--once"]);
  await withRestored(served.folder, dir, async (promoted) => {
    await promoted.start();
    assert.equal((await allEvents(promoted.socketPath)).at(-1)!.event_id, last_event_id);
  });
});
