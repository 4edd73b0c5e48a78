/** What happens over a socket while sealing is too far behind. */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { PENDING_FILES_MAX } from "../../src/log/sealing/sealer.ts";
import { batch } from "../support/batches.ts";
import { request } from "../support/http_client.ts";
import { SealingSteps, type SealingStepsOptions } from "../support/sealing_steps.ts";
import { test } from "../support/tested_service.ts";
import { type ServedLog, withServedLog } from "./support/served_log.ts";

/** Longer than any test takes. */
const LONG_WAIT_MS = 600_000;

interface Backlogged extends ServedLog {
  steps: SealingSteps;
  /** Opens to let sealing go on. */
  sealing: PromiseWithResolvers<void>;
  /** Whether seals fail from then on. */
  faults: { isFailing: boolean };
  /** Number of batches stored. */
  stored: number;
}

/** Serves a log whose sealing stands still, and fills it up. */
async function withBacklog(
  options: SealingStepsOptions,
  use: (served: Backlogged) => Promise<void>,
): Promise<void> {
  const steps = new SealingSteps(options);
  const sealing = Promise.withResolvers<void>();
  const faults = { isFailing: false };
  steps.beforeMake = async () => {
    await sealing.promise;
    if (faults.isFailing) throw new Error("no");
  };
  await withServedLog(async (served) => {
    let stored = 0;
    while (!served.service.gate.isClosed) {
      const reply = await request(served.socketPath, { body: batch(`b${stored++}`) });
      assert.equal(reply.status, 200);
      assert.ok(stored <= PENDING_FILES_MAX + 1, `${stored} batches, each in its own file`);
    }
    try {
      await use({ ...served, sealing, faults, steps, stored });
    } finally {
      sealing.resolve();
    }
  }, { sealingOn: steps.on() });
}

/** Sends a batch, and resolves once it waits for sealing or has a response. */
async function sendUntilWaiting(
  { socketPath, service: { gate } }: Backlogged,
  batchId: string,
): Promise<{ reply: Promise<{ status: number }> }> {
  const arrived = Promise.withResolvers<void>();
  const pass = gate.pass;
  gate.pass = (bodyBytes) => {
    arrived.resolve();
    gate.pass = pass;
    return gate.pass(bodyBytes);
  };
  const reply = request(socketPath, { body: batch(batchId) });
  await Promise.race([arrived.promise, reply]);
  return { reply };
}

/** Whatever makes the backlog too large. */
const BOUNDS: [name: string, options: SealingStepsOptions, storedMax: number][] = [
  ["bytes", { backlogWaitBytes: 100_000 }, PENDING_FILES_MAX / 2],
  ["pending files", {}, PENDING_FILES_MAX + 1],
];

for (const [name, options, storedMax] of BOUNDS) {
  test(`too many ${name} unsealed: appends get 429, and everything else goes on`, async () => {
    await withBacklog({ ...options, backlogWaitMs: 1 }, async (served) => {
      const { socketPath, service, sealing, stored } = served;
      assert.ok(stored <= storedMax, `${stored}`);
      const refused = await request(socketPath, { body: batch("new") });
      assert.deepEqual([refused.status, refused.json().error], [429, "overloaded"]);
      assert.match(refused.headers["retry-after"]!, /^[1-9][0-9]*$/);
      const first = batch("b0") as { source: string; events: unknown[] };
      const retire = { path: "/v1/sources/retire", body: { v: 1, source: first.source } };
      assert.equal((await request(socketPath, retire)).status, 429);
      for (const batchId of ["b0", `b${stored - 1}`]) {
        const duplicate = await request(socketPath, { body: batch(batchId) });
        assert.deepEqual([duplicate.status, duplicate.json().status], [200, "duplicate"]);
      }
      const conflict = { ...first, events: [...first.events, ...first.events] };
      assert.equal((await request(socketPath, { body: conflict })).status, 409);
      assert.equal((await request(socketPath, { body: { v: 1 } })).status, 400);
      const { events } = (await request(socketPath)).json();
      assert.equal(events.length, stored);
      const listed = await request(socketPath, { path: "/v1/streams" });
      assert.equal(listed.json().streams[0].event_count, stored);
      sealing.resolve();
      while (service.gate.isClosed) await service.gate.pass(0).catch(() => {});
      const accepted = await request(socketPath, { body: batch("new") });
      assert.equal(accepted.json().status, "committed");
      assert.equal((await request(socketPath, retire)).json().status, "retired");
    });
  });
}

test("appends that wait for sealing are committed in order of arrival", async () => {
  const options = { backlogWaitBytes: 100_000, backlogWaitMs: LONG_WAIT_MS };
  await withBacklog(options, async (served) => {
    const { socketPath, service, sealing, stored } = served;
    const names = [1, 2, 3, 4, 5].map((number) => `waiting ${number}`);
    const sent = [];
    for (const name of names) sent.push(await sendUntilWaiting(served, name));
    assert.equal(service.size.log_events, stored);
    sealing.resolve();
    for (const { reply } of sent) assert.equal((await reply).status, 200);
    const { events } = (await request(socketPath, { path: "/v1/events?limit=1000" })).json();
    const ids = events.map((event: { batch_id: string }) => event.batch_id);
    assert.deepEqual(ids.slice(-names.length), names);
  });
});

test("after sealing has failed for long, appends go on with the first seal that succeeds", async () => {
  const options = { backlogWaitBytes: 100_000, backlogWaitMs: 1 };
  await withBacklog(options, async ({ socketPath, service, sealing, faults, steps, stored }) => {
    faults.isFailing = true;
    for (let failures = 0; failures < 5; failures++) {
      const paused = steps.nextPause();
      sealing.resolve();
      steps.resume();
      await paused;
      assert.equal((await request(socketPath, { body: batch("new") })).status, 429);
      assert.equal((await request(socketPath)).json().events.length, stored);
    }
    faults.isFailing = false;
    steps.resume();
    while (service.gate.isClosed) await setTimeout(1);
    assert.equal((await request(socketPath, { body: batch("new") })).json().status, "committed");
  });
});

test("a shutdown ends the waits for sealing", async () => {
  const options = { backlogWaitBytes: 100_000, backlogWaitMs: LONG_WAIT_MS };
  await withBacklog(options, async (served) => {
    const { reply } = await sendUntilWaiting(served, "new");
    const stopped = served.shutDown();
    assert.equal((await reply).status, 429);
    served.sealing.resolve();
    await stopped;
  });
});
