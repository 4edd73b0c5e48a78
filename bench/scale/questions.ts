/**
 * The requests to a served log: pages, keys, appends, preconditions, streams. Requests are sent one
 * at a time, kind by kind. The first of each kind is reported separately, because caches are cold.
 */
import { median } from "../../tools/support/median.ts";
import { ask, type Question } from "../support/exchange.ts";
import type { RawClient } from "../support/raw_client.ts";
import { rounded } from "../support/report.ts";
import { pageRequest, postRequest } from "../support/requests.ts";
import { pagePosition } from "../support/workloads.ts";
import { type Figures, type LogFacts, positionAt } from "./built_log.ts";
import {
  BulkBatches,
  bulkKeyRequest,
  OLD_SOURCE,
  PAGE_EVENTS,
  singleBatch,
  SOURCES,
  streamCursor,
  streamsRequest,
} from "./history.ts";

/** Number of requests of each kind, including the first. */
const QUESTIONS = 50;
/** Number of appends and of conflicts. They are cheap, and their times differ little. */
const APPENDS = 500;
/** Number of old streams used in one measurement. Each can be used only once. */
const OLD_ASKED = 25;
/** Number of anchors for pages of streams. Each is requested once. */
const ANCHORS = 10;
/** Step between requests. It is coprime to most counts, so consecutive ones are not neighbors. */
const STEP = 7919;

const COMMITTED = '"status":"committed"';
const CONFLICT = '"error":"stream_frontier_conflict"';

/** Sends requests of one kind. @returns the first latency, and the median and maximum of others. */
async function askAll(
  client: RawClient,
  name: string,
  count: number,
  questionOf: (number: number) => Question,
): Promise<Figures> {
  const tookMs: number[] = [];
  for (let number = 0; number < count; number++) {
    tookMs.push((await ask(client, questionOf(number))).tookMs);
  }
  const [firstMs, ...laterMs] = tookMs;
  return {
    [`${name}: first ms`]: rounded(firstMs!, 2),
    [`${name}: p50 ms`]: rounded(median(laterMs), 3),
    [`${name}: slowest ms`]: rounded(Math.max(...laterMs), 2),
  };
}

/** Reads pages of 1,000 events: the same page repeatedly at three positions, then random ones. */
export async function askPages(client: RawClient, facts: LogFacts): Promise<Figures> {
  const { positions, endAfter } = facts;
  const pageAfter = (after: string | null): Question => ({
    request: pageRequest(after, PAGE_EVENTS),
    expected: '"snapshot_through_event_id"',
  });
  const places = { beginning: null, middle: positionAt(facts, 0.5), end: endAfter };
  let figures: Figures = {};
  for (const [name, after] of Object.entries(places)) {
    const page = () => pageAfter(after);
    figures = { ...figures, ...await askAll(client, `page, ${name}`, QUESTIONS, page) };
  }
  const anywhere = (number: number) => pageAfter(positions[number * STEP % positions.length]!);
  return { ...figures, ...await askAll(client, "page, anywhere", QUESTIONS, anywhere) };
}

/** Reads from the beginning for a given time. */
export async function askReplay(client: RawClient, replayMs: number): Promise<Figures> {
  const startMs = performance.now();
  let after: string | null = null;
  let events = 0;
  let isLast = false;
  while (!isLast && performance.now() < startMs + replayMs) {
    const request = pageRequest(after, PAGE_EVENTS);
    const { response } = await ask(client, { request, expected: "next_after" });
    const { nextAfter, snapshotThrough } = pagePosition(response.bodyEnd);
    after = nextAfter;
    isLast = nextAfter === snapshotThrough;
    if (!isLast) events += PAGE_EVENTS;
  }
  const seconds = (performance.now() - startMs) / 1000;
  return { "replay from the beginning events/s": Math.round(events / seconds) };
}

/** Looks up record keys, a different one each time. */
export function askKeys(client: RawClient, facts: LogFacts): Promise<Figures> {
  return askAll(client, "record key", QUESTIONS, (number) => ({
    request: bulkKeyRequest(number * STEP % facts.bulkEvents),
    expected: '"last_event_id"',
  }));
}

/** Sends duplicates of batches in the bulk. */
export function askDuplicates(client: RawClient, facts: LogFacts): Promise<Figures> {
  const requests = new BulkBatches(facts.shape);
  return askAll(client, "duplicate", QUESTIONS, (number) => ({
    request: requests.request(number * STEP % facts.bulkBatches),
    expected: '"status":"duplicate"',
  }));
}

/**
 * Sends new batches of one event. Some are committed; others fail their precondition, which
 * requires the same checks but writes nothing.
 */
export async function askNewBatches(client: RawClient, { askings }: LogFacts): Promise<Figures> {
  const batchOf = (kind: string, number: number, expectedFrontier?: string) => {
    const batchId = `${kind}-${askings}-${number}`;
    return postRequest(singleBatch({ batchId, source: "new", stream: "new", expectedFrontier }));
  };
  const nowhere = "00000000-0000-7000-8000-000000000000";
  return {
    ...await askAll(client, "append of a new batch", APPENDS, (number) => (
      { request: batchOf("append", number), expected: COMMITTED }
    )),
    ...await askAll(client, "check of a new batch", APPENDS, (number) => (
      { request: batchOf("refused", number, nowhere), expected: CONFLICT, status: 409 }
    )),
  };
}

/** Appends with a precondition on a stream whose only event is among the oldest in the log. */
export function askPreconditions(client: RawClient, facts: LogFacts): Promise<Figures> {
  const old = Object.entries(facts.oldStreams).slice(0, OLD_ASKED);
  if (old.length < 2) throw new Error("no old streams are left; rebuild the log");
  return askAll(client, "precondition, old stream", old.length, (number) => {
    const [stream, expectedFrontier] = old[number]!;
    const batchId = `${stream}-${facts.askings}`;
    delete facts.oldStreams[stream];
    const batch = singleBatch({ batchId, source: OLD_SOURCE, stream, expectedFrontier });
    return { request: postRequest(batch), expected: COMMITTED };
  });
}

/** Reads pages of 100 streams: from the latest snapshot, and as of events in the middle. */
export async function askStreams(client: RawClient, facts: LogFacts): Promise<Figures> {
  const question = (parameters: string): Question => ({
    request: streamsRequest(parameters),
    expected: '"snapshot_through_event_id"',
  });
  const newest = pagePosition((await client.exchange(pageRequest(null, 1))).bodyEnd);
  const middle = `&after=${streamCursor(SOURCES / 2)}&through=${newest.snapshotThrough}`;
  const anchored = (number: number) => {
    const through = positionAt(facts, 0.4 + 0.2 * number / ANCHORS);
    return question(`&after=${streamCursor(0)}&through=${through}`);
  };
  return {
    ...await askAll(client, "streams page, first", QUESTIONS, () => question("")),
    ...await askAll(client, "streams page, middle", QUESTIONS, () => question(middle)),
    ...await askAll(client, "streams page, anchored", ANCHORS, anchored),
  };
}
