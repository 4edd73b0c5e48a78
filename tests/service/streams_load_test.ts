/**
 * When `streams()` reads the log: at first, for an anchor it does not keep, and what may go wrong
 * then.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { randomInteger, randomItem, seededRandom, testSeed } from "../../tools/support/random.ts";
import { failNth, gateAt } from "../support/storage_faults.ts";
import {
  ALL_STREAMS,
  countedThrough,
  replayAll,
  serviceWithStreams,
} from "../support/stream_listing.ts";
import { submit, submittedBatch } from "../support/submitted.ts";
import { openTestService } from "../support/test_service.ts";
import { STREAM_SNAPSHOTS_MAX } from "../../src/service/streams.ts";

function readsOf({ operations }: SimulatedDisk): number {
  return operations.filter(({ kind }) => kind === "read").length;
}

test("streams() reads nothing for the next pages, also after anchors that are no events", async () => {
  const { service, storage, ends } = await serviceWithStreams();
  const first = await service.streams({ ...ALL_STREAMS, limit: 2 });
  for (let place = 0; place <= STREAM_SNAPSHOTS_MAX; place++) {
    const through = ends[0]!.slice(0, -4) + "fff" + place;
    await assert.rejects(service.streams({ ...ALL_STREAMS, through }));
  }
  const readsBefore = readsOf(storage);
  const after = { source: "a", stream: "x" };
  const through = first.snapshot_through_event_id!;
  await service.streams({ ...ALL_STREAMS, through, after });
  assert.equal(readsOf(storage), readsBefore);
  await service.close();
});

test("streams() keeps the anchors that were asked for last", async () => {
  const { service, storage } = await serviceWithStreams();
  const anchors = (await replayAll(service)).map((event) => event.event_id);
  const page = (place: number) => service.streams({ ...ALL_STREAMS, through: anchors[place]! });
  for (let place = 0; place < STREAM_SNAPSHOTS_MAX; place++) await page(place);
  await page(0);
  await page(STREAM_SNAPSHOTS_MAX);
  const readsBefore = readsOf(storage);
  await page(0);
  assert.equal(readsOf(storage), readsBefore);
  await page(1);
  assert.ok(readsOf(storage) > readsBefore);
  await service.close();
});

test("streams() reads the log once for all who ask for an anchor at the same time", async () => {
  const { service, storage, ends } = await serviceWithStreams();
  const readsBefore = readsOf(storage);
  await service.streams({ ...ALL_STREAMS, through: ends[0] });
  const readsOfOne = readsOf(storage) - readsBefore;
  const pages = await Promise.all(
    [1, 2, 3].map(() => service.streams({ ...ALL_STREAMS, through: ends[1] })),
  );
  assert.equal(readsOf(storage) - readsBefore, 2 * readsOfOne);
  assert.deepEqual(pages[1], pages[0]);
  assert.deepEqual(pages[2], pages[0]);
  await service.close();
});

test("streams() takes in what is committed while the log is first read", async () => {
  const storage = new SimulatedDisk();
  const { service: before } = await serviceWithStreams(storage);
  await before.close();
  const { service } = await openTestService(storage);
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const listings = [service.streams(ALL_STREAMS), service.streams({ ...ALL_STREAMS, source: "a" })];
  await gate.reached;
  await submit(service, submittedBatch("a", "3", ["x", "new"]));
  await submit(service, submittedBatch("b", "1", ["x"]));
  gate.open();
  const [all, ofOne] = await Promise.all(listings);
  const events = await replayAll(service);
  assert.equal(all!.snapshot_through_event_id, events.at(-1)!.event_id);
  assert.deepEqual(all!.streams, countedThrough(events, events.at(-1)!.event_id));
  assert.deepEqual(ofOne!.streams, all!.streams.filter(({ source }) => source === "a"));
  await submit(service, submittedBatch("b", "2", ["x"]));
  const later = await replayAll(service);
  assert.deepEqual(
    (await service.streams(ALL_STREAMS)).streams,
    countedThrough(later, later.at(-1)!.event_id),
  );
  await service.close();
});

test("streams() works again after a read that failed, with what was committed meanwhile", async () => {
  const storage = new SimulatedDisk();
  const { service: before, ends } = await serviceWithStreams(storage);
  await before.close();
  const { service } = await openTestService(storage);
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const failed = assert.rejects(service.streams(ALL_STREAMS), { code: "EIO" });
  await gate.reached;
  await submit(service, submittedBatch("a", "3", ["x", "new"]));
  gate.open({ errno: "EIO" });
  await failed;
  storage.hook = failNth("read", 2, { errno: "EIO" });
  await assert.rejects(service.streams({ ...ALL_STREAMS, through: ends[1] }), { code: "EIO" });
  const events = await replayAll(service);
  assert.deepEqual(
    (await service.streams(ALL_STREAMS)).streams,
    countedThrough(events, events.at(-1)!.event_id),
  );
  assert.deepEqual(
    (await service.streams({ ...ALL_STREAMS, through: ends[1] })).streams,
    countedThrough(events, ends[1]!),
  );
  await service.close();
});

const seed = testSeed();

test(`streams() is right at any frontier while the log is first read (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  for (let run = 0; run < 20; run++) {
    const { service: before, storage } = await serviceWithStreams();
    await before.close();
    const { service } = await openTestService(storage);
    storage.hook = async () => {
      for (let turns = randomInteger(random, 0, 20); turns > 0; turns--) await Promise.resolve();
      return null;
    };
    const write = async (client: number) => {
      for (let place = 0; place < 5; place++) {
        const streams = ["x", randomItem(random, ["y", "z", "n1", "n2", "n3"])];
        await submit(service, submittedBatch("a", `${client}-${place}`, streams));
      }
    };
    const list = () => service.streams({ ...ALL_STREAMS, limit: randomInteger(random, 1, 20) });
    const writers = [write(1), write(2)];
    const pages = [
      await list(),
      await list(),
      ...await Promise.all([list(), list()]),
      await list(),
    ];
    await Promise.all(writers);
    const events = await replayAll(service);
    for (const { streams, snapshot_through_event_id: through } of pages) {
      const expected = countedThrough(events, through!);
      assert.deepEqual(streams, expected.slice(0, streams.length));
      const all = await service.streams({ ...ALL_STREAMS, through: through! });
      assert.deepEqual(all.streams, expected);
    }
    await service.close();
  }
});
