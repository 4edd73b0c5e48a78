/**
 * Many followers with different filters, limits and positions, some of which reconnect while
 * batches are committed. Each gets exactly its events, once and in order. The clock leaps, so that
 * records without events report positions in between.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import { FOLLOW_RECORD_BYTES_MAX } from "../../src/limits.ts";
import type { EventFilter } from "../../src/log/line/stored_line.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import type { ReplayQuery } from "../../src/log/read/event_scan.ts";
import { type EventsRecord, FOLLOW_ALL, idsOf, nextRecord } from "../support/follow_records.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { pause } from "../support/pause.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import { replayAll } from "../support/stream_listing.ts";
import { submit, type SubmittedEvent } from "../support/submitted.ts";
import { openTestService } from "../support/test_service.ts";

const HISTORIES = 8;
const FOLLOWERS = 12;
const WRITERS = 3;
const BATCHES_EACH = 12;
const VALUES = {
  source: ["a", "a-b"],
  stream: ["s", "s.t", "t"],
  recordKey: ["1", '1"', "\u00e9"],
  kind: ["upserted", "deleted"],
};
/** Share of the members that a filter tests. */
const FILTERED_SHARE = 0.45;
/** Share of the disk operations that take a turn of the event loop. */
const TURN_SHARE = 0.7;
/** Largest leap of the clock, which followers read a few times for each record. */
const LEAP_MS_MAX = 2000;

function randomFilter(random: Random): EventFilter {
  const members = Object.entries(VALUES).filter(() => random() < FILTERED_SHARE);
  return Object.fromEntries(members.map(([name, values]) => [name, randomItem(random, values)]));
}

function matches(filter: EventFilter, event: CommittedEvent): boolean {
  const { source, stream, record_key: recordKey, kind } = event;
  const expected = { source, stream, recordKey, kind, ...filter };
  return Object.entries({ source, stream, recordKey, kind }).every(([name, value]) =>
    expected[name as keyof EventFilter] === value
  );
}

/** A random event that matches a filter. */
function randomEvent(random: Random, filter: EventFilter = {}): SubmittedEvent {
  return {
    stream: filter.stream ?? randomItem(random, VALUES.stream),
    record_key: filter.recordKey ?? randomItem(random, VALUES.recordKey),
    kind: filter.kind ?? randomItem(random, VALUES.kind),
    payload: random() < 0.02 ? "x".repeat(100 * 1024) : randomInteger(random, 0, 1000),
  };
}

async function write(random: Random, service: EventLogService, writer: number): Promise<void> {
  for (let batch = 0; batch < BATCHES_EACH; batch++) {
    await pause(random, 40);
    const events = Array.from({ length: randomInteger(random, 1, 5) }, () => randomEvent(random));
    const source = randomItem(random, VALUES.source);
    await submit(service, { source, batch_id: `${writer}-${batch}`, events });
  }
}

/** Undefined, the id of the last event, or an id slightly past it. */
function randomAfter(random: Random, service: EventLogService): string | undefined {
  const { snapshotThroughEventId: last } = service.replay({ ...FOLLOW_ALL, limitEvents: 1 });
  if (last === null || random() < 0.3) return undefined;
  if (random() < 0.5) return last;
  const counter = parseInt(last.slice(-8), 16) + 2;
  return last.slice(0, -8) + counter.toString(16).padStart(8, "0");
}

/** The records from one session, up to a disconnect or the record that contains `lastBatch`. */
async function followOnce(
  random: Random,
  service: EventLogService,
  query: ReplayQuery,
  lastBatch: string,
): Promise<EventsRecord[]> {
  const follow = service.follow(query);
  const records: EventsRecord[] = [];
  let caughtUp = false;
  for (;;) {
    await pause(random, 60);
    const record = await nextRecord(follow);
    assert.notEqual(record.type, "end", JSON.stringify(record));
    if (record.type === "caught_up") {
      assert.ok(!caughtUp && records.length > 0, "caught_up is sent once, after the snapshot");
      caughtUp = true;
    } else {
      assertRecord(record as EventsRecord, caughtUp, records.at(-1), query);
      records.push(record as EventsRecord);
      const isLast = records.at(-1)!.events.some((event) => event.batch_id === lastBatch);
      if (isLast || random() < 0.1) break;
    }
  }
  follow.close();
  return records;
}

function assertRecord(
  record: EventsRecord,
  isLive: boolean,
  before: EventsRecord | undefined,
  { limitEvents }: ReplayQuery,
): void {
  const { events, next_after, snapshot_through_event_id: through } = record;
  assert.equal(record.phase, isLive ? "live" : "snapshot");
  assert.ok(events.length <= limitEvents);
  const hasMoved = (next_after ?? "") > (before?.next_after ?? "");
  assert.ok(before === undefined ? !isLive : hasMoved);
  if (before !== undefined && events.length === 0) positionRecords += 1;
  const bytes = events.reduce((sum, event) => sum + JSON.stringify(event).length, 0);
  assert.ok(events.length === 1 || bytes < FOLLOW_RECORD_BYTES_MAX);
  assert.equal(record.last_event_id, events.at(-1)?.event_id);
  assert.ok(record.last_event_id === undefined || record.last_event_id <= next_after!);
  assert.ok(
    through === null || record.last_event_id === undefined || record.last_event_id <= through,
  );
}

/** Everything a follower receives up to its last batch, across reconnects. */
async function followOn(
  random: Random,
  service: EventLogService,
  query: ReplayQuery,
  lastBatch: string,
): Promise<string[]> {
  const ids: string[] = [];
  let { after } = query;
  for (;;) {
    const records = await followOnce(random, service, { ...query, after }, lastBatch);
    ids.push(...idsOf(...records));
    const last = records.at(-1)!;
    if (last.events.some((event) => event.batch_id === lastBatch)) return ids;
    const lastEventId = idsOf(...records).at(-1) ?? after;
    after = random() < 0.5 ? lastEventId : last.next_after ?? undefined;
  }
}

/** Number of records without events that reported a position. */
let positionRecords = 0;

async function runHistory(random: Random): Promise<void> {
  const storage = new SimulatedDisk();
  storage.hook = async () => {
    await pause(random, 30);
    // Followers are woken in a later turn of the event loop, so commits must take some, too.
    if (random() < TURN_SHARE) await setImmediate();
    return null;
  };
  const { service } = await openTestService(storage);
  const filters = Array.from({ length: FOLLOWERS }, () => randomFilter(random));
  const starts = filters.map(async (filter) => {
    await pause(random, 1500);
    const after = randomAfter(random, service);
    return { after, filter, limitEvents: randomItem(random, [1, 2, 3, 7, 1000]) };
  });
  const followers = starts.map(async (start, place) => {
    const query = await start;
    return { query, ids: await followOn(random, service, query, `last-${place}`) };
  });
  const writers = Array.from({ length: WRITERS }, (_, place) => write(random, service, place));
  await Promise.all([...writers, ...starts]);
  // Each follower's last batch is past the follower's initial position.
  const events = Array.from({ length: 3 }, () => randomEvent(random));
  await submit(service, { source: "a", batch_id: "behind", events });
  for (const [place, filter] of filters.entries()) {
    const source = filter.source ?? randomItem(random, VALUES.source);
    const events = [randomEvent(random, filter)];
    await submit(service, { source, batch_id: `last-${place}`, events });
  }
  const all = await replayAll(service);
  for (const { query, ids } of await Promise.all(followers)) {
    const expected = all.filter((event) => matches(query.filter, event))
      .map((event) => event.event_id)
      .filter((id) => id > (query.after ?? "") && id <= ids.at(-1)!);
    assert.deepEqual(ids, expected, JSON.stringify(query));
  }
  await service.close();
}

const seed = testSeed();

test(`follow() delivers all events once and in order (SEED=${seed})`, async (context) => {
  const random = seededRandom(seed);
  // The number of leaps depends on timing, so they must not disturb the other random choices.
  const leap = seededRandom(seed + 1);
  let nowMs = 0;
  const now = () => nowMs += LEAP_MS_MAX * leap();
  context.mock.method(performance, "now", now);
  for (let history = 0; history < HISTORIES; history++) await runHistory(random);
  assert.ok(positionRecords > 0);
});
