/**
 * Stream pages and stream frontiers in a log with segments, pending files and a tail, even while
 * files are sealed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import type { StreamsPage, StreamsQuery } from "../../src/service/streams.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import { rotateOnly, sealAll, sealOldest } from "../support/sealing.ts";
import { SealingSteps } from "../support/sealing_steps.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { ALL_STREAMS, countedThrough, replayAll } from "../support/stream_listing.ts";
import { submit, submittedBatch } from "../support/submitted.ts";
import { testTime } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";
import { openWatchedService } from "../support/watched_log.ts";

const seed = testSeed();
const SOURCES = ["a", "a-b", "a.b", "b"];
const STREAMS = ["x", "x-y", "x.y", "y", "z", "z0", "z_"];
const SMALL = { events: 6, bytes: Infinity };

/** Appends a few random batches, each in its own commit. */
async function write(random: Random, service: EventLogService, part: number): Promise<void> {
  for (let number = randomInteger(random, 1, 12); number > 0; number--) {
    const streams = Array.from(
      { length: randomInteger(random, 1, 4) },
      () => `${randomItem(random, STREAMS)}${randomInteger(random, 0, part)}`,
    );
    await submit(
      service,
      submittedBatch(randomItem(random, SOURCES), `${part}-${number}`, streams),
    );
  }
}

/** A log with segments, pending files and a tail. Its events have different timestamps. */
async function mixedLog(random: Random): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  const time = testTime();
  let nowMs = time.clockMs();
  const options = { ...time, clockMs: () => nowMs++, storage, report() {} };
  const forms = [
    () => sealAll(storage, SMALL),
    () => sealAll(storage),
    () => rotateOnly(storage),
    () => sealOldest(storage, SMALL),
    () => rotateOnly(storage),
    () => Promise.resolve(),
  ];
  for (let part = 0; part < forms.length; part++) {
    const service = await openWatchedService(options);
    await write(random, service, part);
    await service.close();
    await forms[part]!();
  }
  return storage;
}

/** Reads the page for `query` and all later ones. @returns their combined rows and snapshot. */
async function allPages(service: EventLogService, query: StreamsQuery): Promise<StreamsPage> {
  const first = await service.streams(query);
  const streams = [...first.streams];
  const through = first.snapshot_through_event_id!;
  for (let next = first.next_after; next !== null;) {
    const [source, stream] = next.split("/") as [string, string];
    const page = await service.streams({ ...query, after: { source, stream }, through });
    streams.push(...page.streams);
    next = page.next_after;
  }
  return { ...first, streams };
}

async function assertPages(
  random: Random,
  service: EventLogService,
  events: readonly CommittedEvent[],
): Promise<void> {
  const through = random() < 0.3 ? undefined : randomItem(random, [...events]).event_id;
  const source = random() < 0.6 ? undefined : randomItem(random, [...SOURCES, "none"]);
  const limit = randomInteger(random, 1, 30);
  const { streams } = await allPages(service, { ...ALL_STREAMS, through, source, limit });
  const expected = countedThrough(events, through ?? events.at(-1)!.event_id);
  assert.deepEqual(
    streams,
    expected.filter((row) => source === undefined || row.source === source),
    `through ${through}, source ${source}, limit ${limit}`,
  );
}

/** Asserts that precondition conflicts report the right stream frontiers. */
async function assertFrontiers(
  random: Random,
  service: EventLogService,
  events: readonly CommittedEvent[],
): Promise<void> {
  const frontiers = new Map(
    events.map((event) => [`${event.source} ${event.stream}`, event.event_id]),
  );
  for (const source of SOURCES) {
    const stream = `${randomItem(random, STREAMS)}${randomInteger(random, 0, 5)}`;
    const batch = submittedBatch(source, `check ${random()}`, [stream]);
    const { body } = await submit(service, {
      ...batch,
      stream_precondition: { stream, expected_frontier: "019b7c4e-2d37-7a01-8f00-000000000000" },
    });
    assert.equal(body.error, "stream_frontier_conflict");
    assert.equal(body.actual_frontier, frontiers.get(`${source} ${stream}`) ?? null);
  }
}

test(`pages and frontiers match a log's events in any form (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  for (let run = 0; run < 6; run++) {
    const { service } = await openTestService(await mixedLog(random));
    const events = await replayAll(service);
    for (let page = 0; page < 30; page++) await assertPages(random, service, events);
    await assertFrontiers(random, service, events);
    await service.close();
  }
});

test(`pages describe one snapshot when files are sealed between them (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  for (let run = 0; run < 6; run++) {
    const steps = new SealingSteps({ rotateBytes: 2000, bounds: SMALL });
    const storage = await mixedLog(random);
    const { service } = await openTestService(storage, steps.on());
    for (let part = 20; part < 26; part++) {
      const first = await service.streams({ ...ALL_STREAMS, limit: 3 });
      const through = first.snapshot_through_event_id!;
      const expected = countedThrough(await replayAll(service), through);
      const [, , after] = first.streams;
      const rest = { ...ALL_STREAMS, through, after: after! };
      await Promise.all([
        write(random, service, part),
        service.streams(rest).then(({ streams }) => assert.deepEqual(streams, expected.slice(3))),
      ]);
      assert.deepEqual((await service.streams(rest)).streams, expected.slice(3));
      const events = await replayAll(service);
      await assertPages(random, service, events);
      await assertFrontiers(random, service, events);
    }
    await service.close();
  }
});

test("an unknown anchor is rejected, whether it falls in a segment, a pending file or the tail", async () => {
  const random = seededRandom(seed);
  const { service } = await openTestService(await mixedLog(random));
  const ids = (await replayAll(service)).map((event) => event.event_id);
  for (const id of ids) {
    // Ids just before and after the event, but not past its neighbors.
    for (const digits of ["0".repeat(12), "f".repeat(12)]) {
      const through = id.slice(0, -12) + digits;
      assert.ok(!ids.includes(through));
      await assert.rejects(service.streams({ ...ALL_STREAMS, through }), {
        code: "stream_anchor_unavailable",
      });
    }
  }
  await service.close();
});
