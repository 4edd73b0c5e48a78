/** Compares `EventScan` with a naive model of the log, an array of events. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { REPLAY_RESPONSE_BYTES_MAX } from "../../../src/limits.ts";
import { EventScan, SCAN_PAUSE_BYTES, type ScanOptions } from "../../../src/log/read/event_scan.ts";
import { PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import type { Log } from "../../../src/log/log.ts";
import type { LogSnapshot } from "../../../src/log/read/snapshot.ts";
import type { EventFilter } from "../../../src/log/line/stored_line.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { type EventOptions, preparedBatch } from "../../support/prepared.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../../tools/support/random.ts";
import { rotateOnly, sealAll } from "../../support/sealing.ts";
import { joinPieces, openTestLog, readAll, tailOf, WHOLE } from "../../support/test_log.ts";

/** The start of the path of each file in a random log. */
const FILES = [SEGMENTS_FOLDER, PENDING_FOLDER, TAIL_FILE];
const SOURCES = ["shop", "shop2", "s"];
const STREAMS = ["orders", "orders.eu", "o"];
const KEYS = ["1", "2", 'a"b', "back\\slash", "line\nfeed", "ü€𝄞", '","kind":"'];
const KINDS = ["upserted", "deleted", 'odd"kind'];

interface StoredEvent {
  line: string;
  event_id: string;
  source: string;
  stream: string;
  record_key: string;
  kind: string;
}

interface Query extends ScanOptions {
  filter: EventFilter;
}

/** Reads the events in a tail line by line. */
function storedEvents(tail: Buffer): StoredEvent[] {
  return tail.toString().split("\n")
    .filter((line) => line.startsWith('{"event_id"'))
    .map((line) => ({ ...JSON.parse(line), line }));
}

function expectedPage(events: StoredEvent[], query: Query) {
  const { after = "", filter, limitEvents, limitBytes } = query;
  const matching = events.filter((event) =>
    event.event_id > after &&
    [event.source, undefined].includes(filter.source) &&
    [event.stream, undefined].includes(filter.stream) &&
    [event.record_key, undefined].includes(filter.recordKey) &&
    [event.kind, undefined].includes(filter.kind)
  );
  const page: StoredEvent[] = [];
  let bytes = 0;
  for (const event of matching) {
    bytes += Buffer.byteLength(event.line) + 1;
    const isOver = page.length > 0 && bytes > limitBytes;
    if (isOver) return { page, limitReached: isOver };
    page.push(event);
    // A page that is full does not look whether another event follows.
    const isFull = page.length === limitEvents || bytes >= limitBytes;
    if (isFull) return { page, limitReached: true };
  }
  return { page, limitReached: false };
}

async function assertPage(snapshot: LogSnapshot, events: StoredEvent[], query: Query) {
  const scan = new EventScan(snapshot, query);
  const text = await joinPieces(scan);
  const { page, limitReached } = expectedPage(events, query);
  const label = JSON.stringify(query);
  assert.ok(text === page.map((event) => event.line).join(","), label);
  assert.equal(scan.lastEventId, page.at(-1)?.event_id ?? null, label);
  assert.equal(scan.limitReached, limitReached, label);
  assert.equal(await scan.next(), null, label);
}

function randomEvents(random: Random, count: number): EventOptions[] {
  return Array.from({ length: count }, () => ({
    stream: randomItem(random, STREAMS),
    recordKey: randomItem(random, KEYS),
    kind: randomItem(random, KINDS),
    payload: "x".repeat(randomInteger(random, 0, 200)),
  }));
}

/** A segment, a pending file and a tail, with batches of 1 to 2,000 events. */
async function randomLog(random: Random): Promise<{ log: Log; events: StoredEvent[] }> {
  const storage = new SimulatedDisk();
  const events: StoredEvent[] = [];
  for (const end of [sealAll, rotateOnly, null]) {
    const { log } = await openTestLog(storage);
    for (const size of [1, 1, 300, 2, 2000, ...Array(100).fill(1), 700]) {
      const batch = { source: randomItem(random, SOURCES), events: randomEvents(random, size) };
      await log.append([preparedBatch(`${log.snapshot.frontier}`, batch)]);
    }
    events.push(...storedEvents(tailOf(storage.tree())));
    await log.close();
    await end?.(storage);
  }
  return { log: (await openTestLog(storage)).log, events };
}

function randomQuery(random: Random, events: StoredEvent[]): Query {
  const id = randomItem(random, events).event_id;
  const ids = [
    undefined,
    id,
    events.at(-1)!.event_id,
    id.slice(0, -3) + "fff",
    id.slice(0, -3) + "000",
    "00000000-0000-7000-8000-000000000000",
    "ffffffff-ffff-7fff-bfff-ffffffffffff",
  ];
  // The size of the first line: as a byte limit, it fits exactly one event if there is no filter.
  const lineBytes = Buffer.byteLength(events[0]!.line) + 1;
  const filter: EventFilter = {};
  if (random() < 0.3) filter.source = randomItem(random, [...SOURCES, "none"]);
  if (random() < 0.3) filter.stream = randomItem(random, [...STREAMS, "none"]);
  if (random() < 0.3) filter.recordKey = randomItem(random, [...KEYS, "none"]);
  if (random() < 0.3) filter.kind = randomItem(random, [...KINDS, "none"]);
  return {
    after: randomItem(random, ids),
    filter,
    limitEvents: randomItem(random, [1, 2, 7, 100, 1000, 5000, events.length, Infinity]),
    limitBytes: randomItem(random, [1, lineBytes, 1000, 70_000, 300_000, Infinity]),
  };
}

const seed = testSeed();
test(`EventScan returns the same pages as a naive model (SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const { log: { snapshot }, events } = await randomLog(random);
  assert.deepEqual(snapshot.files.map(({ path }) => path.split("/")[0]), FILES);
  assert.equal(snapshot.frontier, events.at(-1)!.event_id);
  for (let i = 0; i < 300; i++) {
    await assertPage(snapshot, events, randomQuery(random, events));
  }
});

test("EventScan reads lines longer than its read buffer", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const sizes = [10, 3_000_000, 0, 1_048_576, 262_144, 262_143, 1, 2_500_000];
  for (const size of sizes) {
    const events = [{ payload: "x".repeat(size), recordKey: String(size) }];
    await log.append([preparedBatch(`b${size}`, { events })]);
  }
  const events = storedEvents(tailOf(storage.tree()));
  for (const after of [undefined, ...events.map((event) => event.event_id)]) {
    for (const limitEvents of [1, 3, Infinity]) {
      for (const limitBytes of [1, 3_100_000, REPLAY_RESPONSE_BYTES_MAX]) {
        await assertPage(log.snapshot, events, { after, filter: {}, limitEvents, limitBytes });
      }
    }
  }
  await assertPage(log.snapshot, events, { ...WHOLE, filter: { recordKey: "262143" } });
});

test("EventScan fails when committed bytes disappear or change during the scan", async () => {
  for (const damage of ["truncate", "line end"]) {
    const storage = new SimulatedDisk();
    const { log } = await openTestLog(storage);
    await log.append([preparedBatch("a")]);
    const file = await storage.open(TAIL_FILE, "write");
    const lastByte = await file.size() - 1;
    if (damage === "truncate") await file.truncate(lastByte);
    else await file.write(Buffer.from("x"), lastByte);
    await assert.rejects(readAll(log.snapshot), /tail\.ndjson/, damage);
  }
});

test("EventScan.next() reads no more for a client that leaves while it waits for its turn", async () => {
  const { log } = await openTestLog(new SimulatedDisk());
  await log.append([preparedBatch("a")]);
  let isHere = true;
  const scan = new EventScan(log.snapshot, { ...WHOLE, client: () => isHere ? "here" : "gone" });
  const reading = scan.next();
  isHere = false;
  assert.equal(await reading, null);
});

test("EventScan.next() returns an empty piece after a long read without a match", async () => {
  for (const eventsPerPause of [1, 32]) {
    const { log } = await openTestLog(new SimulatedDisk());
    const payload = "x".repeat(SCAN_PAUSE_BYTES / eventsPerPause);
    for (let i = 0; i < 3; i++) {
      const events = Array.from({ length: eventsPerPause }, () => ({ payload }));
      await log.append([preparedBatch(`b${i}`, { events })]);
    }
    const limits = { after: undefined, limitEvents: 1, limitBytes: 1 };
    const scan = new EventScan(log.snapshot, { ...limits, filter: { kind: "wanted" } });
    const sizes: number[] = [];
    for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
      sizes.push(piece.length);
    }
    assert.deepEqual(sizes, [0, 0, 0]);
  }
});
