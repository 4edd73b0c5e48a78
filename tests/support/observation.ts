/**
 * All that a client can see of a log without changing it: the bytes of replay and follow, streams,
 * and the answers to mutations that commit nothing. Two logs with the same history look the same.
 */
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLog } from "../../src/service/event_log.ts";
import type { ReplayQuery } from "../../src/log/read/event_scan.ts";
import type { MixedHistory } from "./mixed_history.ts";
import { outcomeOf } from "./outcome.ts";
import { lineageMarker, submit, submittedEvent } from "./submitted.ts";
import { joinPieces } from "./test_log.ts";

const PAGE_LIMITS = [1, 3, 1000];
/** An id before and after all others. */
const BEYOND = ["00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"];

/** One page, in the bytes of its events, with what else the response holds. */
async function page(log: EventLog, query: ReplayQuery) {
  const replay = log.replay(query);
  const events = await joinPieces(replay);
  const { lastEventId, nextAfter, snapshotThroughEventId } = replay;
  return { events, lastEventId, nextAfter, snapshotThroughEventId };
}

async function allPages(log: EventLog, query: ReplayQuery) {
  const pages = [];
  let after = query.after;
  for (;;) {
    const next = await page(log, { ...query, after });
    pages.push(next);
    if (next.nextAfter === after || next.nextAfter === next.snapshotThroughEventId) return pages;
    after = next.nextAfter!;
  }
}

/** The records of a follow response up to `caught_up`. */
async function followSnapshot(log: EventLog, query: ReplayQuery): Promise<string[]> {
  const follow = log.follow(query);
  const records: string[] = [];
  for (;;) {
    const record = Buffer.from((await follow.next())!).toString();
    records.push(record);
    if (record.startsWith('{"type":"caught_up"')) break;
  }
  follow.close();
  return records;
}

/** Every filter by one value that there is, some by several, and some that match nothing. */
function filtersOf(events: readonly CommittedEvent[]): ReplayQuery["filter"][] {
  const distinct = (values: string[]) => [...new Set(values), "none"];
  return [
    {},
    ...distinct(events.map(({ source }) => source)).map((source) => ({ source })),
    ...distinct(events.map(({ stream }) => stream)).map((stream) => ({ stream })),
    ...distinct(events.map(({ record_key }) => record_key)).map((recordKey) => ({ recordKey })),
    ...distinct(events.map(({ kind }) => kind)).map((kind) => ({ kind })),
    { source: "shop", stream: "s-1" },
    { source: "shop", stream: "s-1", kind: "upserted", recordKey: events[1]!.record_key },
    { source: "crm", stream: "only" },
  ];
}

async function reads(log: EventLog) {
  const seen: Record<string, unknown> = {};
  const all = { after: undefined, filter: {}, limitEvents: 1000 };
  const { events: text } = await page(log, all);
  const events: CommittedEvent[] = JSON.parse(`[${text}]`);
  for (const filter of filtersOf(events)) {
    for (const limitEvents of PAGE_LIMITS) {
      const query = { ...all, filter, limitEvents };
      seen[`pages ${JSON.stringify(query)}`] = await allPages(log, query);
    }
    seen[`follow ${JSON.stringify(filter)}`] = await followSnapshot(log, { ...all, filter });
  }
  for (const after of [...events.map(({ event_id }) => event_id), ...BEYOND]) {
    seen[`after ${after}`] = [
      await page(log, { ...all, after, limitEvents: 2 }),
      await page(log, { ...all, after, filter: { source: "crm" } }),
    ];
  }
  Object.assign(seen, await streams(log, events));
  return seen;
}

async function streams(log: EventLog, events: readonly CommittedEvent[]) {
  const seen: Record<string, unknown> = {};
  const anchors = [undefined, ...events.map(({ event_id }) => event_id), ...BEYOND];
  for (const through of anchors) {
    for (const source of [undefined, "shop", "none"]) {
      const query = { source, after: undefined, through, limit: 1000 };
      seen[`streams ${source} ${through}`] = await outcomeOf(log.streams(query));
    }
    if (through === undefined) continue;
    const query = { source: undefined, after: { source: "crm", stream: "s-1" }, through, limit: 2 };
    seen[`streams in pages ${through}`] = await outcomeOf(log.streams(query));
  }
  return seen;
}

/** Answers of the writer that commit nothing. */
async function answers(log: EventLog, history: MixedHistory) {
  const seen: Record<string, unknown> = {};
  for (const { batch } of history.committed) {
    const name = `${batch.source} ${batch.batch_id}`;
    seen[`again ${name}`] = await submit(log, batch);
    const changed = { ...batch, events: [...batch.events, submittedEvent()] };
    seen[`changed ${name}`] = await submit(log, changed);
    const { stream } = batch.events[0]!;
    for (const expected_frontier of [null, BEYOND[0]!]) {
      seen[`conditioned ${name} ${expected_frontier}`] = await submit(log, {
        source: batch.source,
        batch_id: "new",
        events: [submittedEvent(stream)],
        stream_precondition: { stream, expected_frontier },
      });
    }
    const marker = lineageMarker("old", batch.source === "old" ? BEYOND[0]! : BEYOND[1]!);
    seen[`marked ${name}`] = await submit(log, {
      source: batch.source === "old" ? "newest" : batch.source,
      batch_id: "marked",
      events: [batch.source === "old" ? marker : lineageMarker("shop2", BEYOND[0]!)],
    });
  }
  for (const { source } of history.retirements) {
    seen[`retired ${source}`] = await outcomeOf(log.retire(source));
    seen[`append to ${source}`] = await submit(log, {
      source,
      batch_id: "new",
      events: [submittedEvent()],
    });
  }
  seen["retire unknown"] = await outcomeOf(log.retire("none"));
  return seen;
}

/** Everything that can be seen, by what was asked. */
export async function observe(log: EventLog, history: MixedHistory) {
  return { ...await reads(log), ...await answers(log, history) };
}
