/**
 * The requests to a served log: pages, keys, appends, preconditions, streams. Requests are sent one
 * at a time, kind by kind. The first of each kind is reported separately, because caches are cold.
 */
import { median } from "../../tools/support/median.ts";
import { ask, type Question } from "../support/exchange.ts";
import { type LoadOptions, runLoad } from "../support/load.ts";
import type { RawClient } from "../support/raw_client.ts";
import { rounded } from "../support/report.ts";
import { keyRequest, pageRequest, postRequest } from "../support/requests.ts";
import { pagePosition, streamWorkload } from "../support/workloads.ts";
import { type LogFacts, positionAt } from "./build.ts";
import {
  bulkBatch,
  OLD_STREAM,
  singleBatch,
  SOURCES,
  streamCursor,
  streamsRequest,
} from "./history.ts";

/** Figures by name, in print order; null if unavailable on this system. */
export type Figures = Record<string, number | null>;

/** Number of requests of each kind, including the first. */
const QUESTIONS = 50;
/** Number of appends. They are cheap, and their times differ little. */
const APPENDS = 500;
const CLIENTS = 64;
/** Number of anchors for pages of streams. Each is requested once. */
const ANCHORS = 10;
/** Step between requests. It is coprime to most counts, so consecutive ones are not neighbors. */
const STEP = 7919;
/** No event has this id. */
const NOWHERE = "00000000-0000-7000-8000-000000000000";

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
  const { positions } = facts;
  const pageAfter = (after: string | null): Question => ({
    request: pageRequest(after),
    expected: '"snapshot_through_event_id"',
  });
  const places = { beginning: null, middle: positionAt(facts, 0.5), tail: positions.at(-1)! };
  let figures: Figures = {};
  for (const [name, after] of Object.entries(places)) {
    const page = () => pageAfter(after);
    figures = { ...figures, ...await askAll(client, `page, ${name}`, QUESTIONS, page) };
  }
  const anywhere = (number: number) => pageAfter(positions[number * STEP % positions.length]!);
  return { ...figures, ...await askAll(client, "page, anywhere", QUESTIONS, anywhere) };
}

/** Looks up record keys, a different one each time. */
export async function askKeys(client: RawClient, facts: LogFacts): Promise<Figures> {
  return {
    ...await askAll(client, "record key", QUESTIONS, (number) => ({
      request: keyRequest(number * STEP % facts.bulkEvents),
      expected: '"last_event_id"',
    })),
    ...await askAll(client, "absent record key", QUESTIONS, (number) => ({
      request: keyRequest(-1 - number),
      expected: '"events":[]',
    })),
  };
}

/** Sends duplicates of batches in the bulk. */
export function askDuplicates(client: RawClient, facts: LogFacts): Promise<Figures> {
  return askAll(client, "duplicate", QUESTIONS, (number) => ({
    request: postRequest(bulkBatch(facts.shape, number * STEP % facts.bulkBatches)),
    expected: '"status":"duplicate"',
  }));
}

/** Appends new batches of one event. */
export function askNewBatches(client: RawClient): Promise<Figures> {
  const idPrefix = `new-${Date.now()}`;
  return askAll(client, "append of a new batch", APPENDS, (number) => ({
    request: postRequest(
      singleBatch({ batchId: `${idPrefix}-${number}`, source: "new", stream: "new" }),
    ),
    expected: '"status":"committed"',
  }));
}

/** Appends single events from many clients, each to a stream of its own. */
export async function askManyClients(
  options: Omit<LoadOptions, "workloads">,
): Promise<Figures> {
  const idPrefix = `many-${Date.now()}`;
  const workloads = Array.from(
    { length: CLIENTS },
    (_, client) => streamWorkload({ source: "new", stream: `${idPrefix}-${client}` }),
  );
  const { events, seconds } = await runLoad({ ...options, workloads });
  return { [`appends, ${CLIENTS} clients, events/s`]: Math.round(events / seconds) };
}

/** Appends with a wrong precondition on a stream whose last event is among the oldest. */
export function askPreconditions(client: RawClient): Promise<Figures> {
  return askAll(client, "precondition, old stream", QUESTIONS, (number) => {
    const batchId = `refused-${number}`;
    const batch = singleBatch({ batchId, ...OLD_STREAM, expectedFrontier: NOWHERE });
    const expected = '"error":"stream_frontier_conflict"';
    return { request: postRequest(batch), expected, status: 409 };
  });
}

/** Reads the first page of streams. */
export function askFirstStreams(client: RawClient): Promise<Figures> {
  return askAll(client, "streams page, first", QUESTIONS, () => streamsQuestion(""));
}

/** Reads pages of streams in the middle, and as of different events in the middle of the log. */
export async function askStreams(client: RawClient, facts: LogFacts): Promise<Figures> {
  const newest = pagePosition((await client.exchange(pageRequest(null, 1))).bodyEnd);
  const middle = `&after=${streamCursor(SOURCES / 2)}&through=${newest.snapshotThrough}`;
  const anchored = (number: number) => {
    const through = positionAt(facts, 0.4 + 0.2 * number / ANCHORS);
    return streamsQuestion(`&after=${streamCursor(0)}&through=${through}`);
  };
  return {
    ...await askAll(client, "streams page, middle", QUESTIONS, () => streamsQuestion(middle)),
    ...await askAll(client, "streams page, anchored", ANCHORS, anchored),
  };
}

function streamsQuestion(parameters: string): Question {
  return { request: streamsRequest(parameters), expected: '"snapshot_through_event_id"' };
}
