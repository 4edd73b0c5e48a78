/**
 * Everything that a client can observe about a log without changing it: the bytes of replays and
 * follows, stream listings, and the responses to mutations that commit nothing. Logs with the same
 * history yield the same observations.
 */
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import type { ReplayQuery } from "../../src/log/read/event_scan.ts";
import type { MixedHistory } from "./mixed_history.ts";
import { outcomeOf } from "./outcome.ts";
import { replayAll } from "./stream_listing.ts";
import { lineageMarker, submit, type SubmittedBatch, submittedEvent } from "./submitted.ts";
import { joinPieces } from "./test_log.ts";

const PAGE_LIMITS = [1, 3, 1000];
/** Ids that sort before and after all others. */
const BEYOND = ["00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"];

/** A request and its response. */
type Seen = [question: string, answer: unknown];

/** Reads up to `pagesMax` pages. @returns their events' bytes and their other members. */
async function pages(log: EventLogService, query: ReplayQuery, pagesMax = Infinity) {
  const seen = [];
  for (let after = query.after; seen.length < pagesMax;) {
    const replay = log.replay({ ...query, after });
    const events = await joinPieces(replay);
    const { lastEventId, nextAfter, snapshotThroughEventId } = replay;
    seen.push({ events, lastEventId, nextAfter, snapshotThroughEventId });
    if (nextAfter === after || nextAfter === snapshotThroughEventId) break;
    after = nextAfter!;
  }
  return seen;
}

/** The records in a follow response up to `caught_up`. */
async function followSnapshot(log: EventLogService, query: ReplayQuery): Promise<string[]> {
  const follow = log.follow(query);
  const records: string[] = [];
  while (!records.at(-1)?.startsWith('{"type":"caught_up"')) {
    records.push(Buffer.from((await follow.next())!).toString());
  }
  follow.close();
  return records;
}

/** A filter for each existing value, some that combine values, and some that match nothing. */
function filtersOf(events: readonly CommittedEvent[]): ReplayQuery["filter"][] {
  const single = events.flatMap(({ source, stream, record_key: recordKey, kind }) => [
    ...[{ source }, { stream }, { recordKey }, { kind }],
  ]);
  const others = [
    ...[{}, { source: "none" }, { stream: "none" }, { recordKey: "none" }, { kind: "none" }],
    { source: "shop", stream: "s-1" },
    { source: "shop", stream: "s-1", kind: "upserted", recordKey: events[1]!.record_key },
    { source: "crm", stream: "only" },
  ];
  const all: [string, ReplayQuery["filter"]][] = [...single, ...others].map((filter) => [
    JSON.stringify(filter),
    filter,
  ]);
  return [...new Map(all).values()];
}

async function* reads(log: EventLogService): AsyncGenerator<Seen> {
  const all = { after: undefined, filter: {}, limitEvents: 1000 };
  const events = await replayAll(log);
  for (const filter of filtersOf(events)) {
    for (const limitEvents of PAGE_LIMITS) {
      const query = { ...all, filter, limitEvents };
      yield [`pages ${JSON.stringify(query)}`, await pages(log, query)];
    }
    yield [`follow ${JSON.stringify(filter)}`, await followSnapshot(log, { ...all, filter })];
  }
  for (const after of [...events.map(({ event_id }) => event_id), ...BEYOND]) {
    yield [`two after ${after}`, await pages(log, { ...all, after, limitEvents: 2 }, 1)];
    const query = { ...all, after, filter: { source: "crm" } };
    yield [`after ${after}`, await pages(log, query, 1)];
  }
  for (const through of [undefined, ...events.map(({ event_id }) => event_id), ...BEYOND]) {
    for (const source of [undefined, "shop", "none"]) {
      const query = { source, after: undefined, through, limit: 1000 };
      yield [`streams ${source} ${through}`, await outcomeOf(log.streams(query))];
    }
    if (through === undefined) continue;
    const query = { source: undefined, after: { source: "crm", stream: "s-1" }, through, limit: 2 };
    yield [`streams in pages ${through}`, await outcomeOf(log.streams(query))];
  }
}

/** Batches that the service must not commit: duplicates and invalid ones. */
function* refusedBatches(history: MixedHistory): Generator<SubmittedBatch> {
  for (const { batch } of history.committed) {
    const { source, events } = batch;
    yield batch;
    yield { ...batch, events: [...events, submittedEvent()] };
    const { stream } = events[0]!;
    for (const expected_frontier of [null, BEYOND[0]!]) {
      const stream_precondition = { stream, expected_frontier };
      yield { source, batch_id: "new", events: [submittedEvent(stream)], stream_precondition };
    }
    yield source === "old"
      ? { source: "newest", batch_id: "marked", events: [lineageMarker("old", BEYOND[0]!)] }
      : { source, batch_id: "marked", events: [lineageMarker("shop2", BEYOND[0]!)] };
  }
  for (const { source } of history.retirements) {
    yield { source, batch_id: "new", events: [submittedEvent()] };
  }
}

/** All observations, keyed by request. */
export async function observe(log: EventLogService, history: MixedHistory) {
  const seen: Record<string, unknown> = {};
  for await (const [question, answer] of reads(log)) seen[question] = answer;
  for (const batch of refusedBatches(history)) {
    seen[`append ${JSON.stringify(batch)}`] = await submit(log, batch);
  }
  for (const source of ["none", ...history.retirements.map(({ source }) => source)]) {
    seen[`retire ${source}`] = await outcomeOf(log.retire(source));
  }
  return seen;
}
