/**
 * A consumer of finite responses: pages with and without filters from anywhere in the log, single
 * records by key, and stream listings. Sometimes it disconnects in the middle of a response.
 */
import type { ReplayFilter } from "../../src/client/replay.ts";
import { randomInteger, randomItem } from "../support/random.ts";
import { type ClientLoad, giveUpAfter, pause, readSignal } from "./load.ts";
import { claim } from "./violation.ts";
import { KINDS, makeBatch, recordKeyOf, STREAMS } from "./workload.ts";

const PAGES_MAX = 5;
const PAGE_EVENTS_MAX = 1000;
/** Most reads start within this many recent batches, since most consumers are almost caught up. */
const RECENT_BATCHES = 100;
const PAUSE_MS_MAX = 100;
const ABORT_MS_MAX = 30;

const STEPS = [readPages, readPages, readPages, lookUp, lookUp, listStreams, readAndGiveUp];

/** Returns a typical filter, sometimes for a source that does not exist. */
export function randomFilter({ ledger, random }: ClientLoad): ReplayFilter {
  const filter: ReplayFilter = {};
  if (random() < 0.5) return filter;
  const { acknowledged } = ledger;
  if (random() < 0.5) {
    const isKnown = acknowledged.length > 0 && random() < 0.9;
    filter.source = isKnown ? randomItem(random, acknowledged).source : "nobody";
  }
  if (random() < 0.5) filter.stream = randomItem(random, STREAMS);
  if (random() < 0.3) filter.kind = randomItem(random, KINDS);
  return filter;
}

/** Returns a position in the log: the beginning, after some event, or near the end. */
export function randomPosition({ ledger, random }: ClientLoad): string | null {
  const { acknowledged } = ledger;
  if (acknowledged.length === 0 || random() < 0.05) return null;
  const known = random() < 0.7 ? acknowledged.slice(-RECENT_BATCHES) : acknowledged;
  return randomItem(random, known).receipt!.first_event_id;
}

/** Runs until the load ends. @throws {Violation} or any other error that occurs. */
export async function runReader(load: ClientLoad): Promise<void> {
  while (!load.ending.aborted) {
    await randomItem(load.random, STEPS)(load);
    await pause(load, load.random() * PAUSE_MS_MAX);
  }
}

async function readPages(load: ClientLoad): Promise<void> {
  const { client, name, observations, random, tally } = load;
  const filter = randomFilter(load);
  const limit = randomInteger(random, 1, PAGE_EVENTS_MAX);
  let pagesLeft = randomInteger(random, 1, PAGES_MAX);
  let after = randomPosition(load);
  const options = { ...filter, after, limit, signal: readSignal(load) };
  for await (const { events, nextAfter } of client.replayPages(options)) {
    const { length } = events;
    claim(length <= limit, `${name} got ${length} events, its limit is ${limit}`);
    if (nextAfter === null) return;
    const seen = { filter, after, hashes: events.map(({ event_hash }) => event_hash) };
    observations.push({ observer: name, through: nextAfter, seen });
    tally.add("pages");
    after = nextAfter;
    pagesLeft -= 1;
    if (pagesLeft === 0) return;
  }
}

/** Reads an event by its key, which is unique within its source. */
async function lookUp(load: ClientLoad): Promise<void> {
  const { client, ledger, random, seed, tally } = load;
  if (ledger.acknowledged.length === 0) return;
  const { source, batchId, receipt } = randomItem(random, ledger.acknowledged);
  if (batchId.endsWith("lineage")) return;
  const { events } = makeBatch(seed, source, batchId);
  const recordKey = recordKeyOf(batchId, randomInteger(random, 0, events.length - 1));
  const found: string[] = [];
  const options = { source, recordKey, signal: readSignal(load) };
  for await (const event of client.replay(options)) found.push(event.event_id);
  const [id] = found;
  const { first_event_id, last_event_id } = receipt!;
  const isIt = found.length === 1 && first_event_id <= id! && id! <= last_event_id;
  claim(isIt, `${source}/${recordKey} was found ${found.length} times, at [${found}]`);
  tally.add("lookups");
}

async function listStreams(load: ClientLoad): Promise<void> {
  const { client, name, observations, tally } = load;
  const { streams, snapshotThroughEventId: through } = await client.streams({
    signal: readSignal(load),
  });
  if (through === null) return;
  observations.push({ observer: name, through, seen: streams });
  tally.add("listings");
}

/** Disconnects before the response is complete. */
async function readAndGiveUp(load: ClientLoad): Promise<void> {
  const { client, random } = load;
  const after = randomPosition(load);
  await giveUpAfter(load, random() * ABORT_MS_MAX, async (signal) => {
    for await (const _ of client.replayPages({ after, limit: 10_000, signal })) break;
  });
}
