/** Counts streams naively, to check the service's listing. */
import type { StreamSummary } from "../../src/event/types.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import { type EventLog, openEventLog } from "../../src/service/event_log.ts";
import type { StreamsQuery } from "../../src/service/streams.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { submit, submittedBatch } from "./submitted.ts";
import { joinPieces, testTime } from "./test_log.ts";

/** A query for all streams in one page. */
export const ALL_STREAMS: StreamsQuery = {
  source: undefined,
  after: undefined,
  through: undefined,
  limit: 1000,
};

/** All events in the log. */
export async function replayAll(service: EventLog): Promise<CommittedEvent[]> {
  const replay = service.replay({ after: undefined, filter: {}, limitEvents: 1_000_000 });
  return JSON.parse(`[${await joinPieces(replay)}]`);
}

/** All events after a given one, in replay format. */
export function replayText(log: EventLog, after?: string): Promise<string> {
  return joinPieces(log.replay({ after, filter: {}, limitEvents: Infinity }));
}

/** The expected listing, counted from the events up to `through`. */
export function countedThrough(
  events: readonly CommittedEvent[],
  through: string,
): StreamSummary[] {
  const rows = new Map<string, StreamSummary>();
  for (const { event_id, source, stream } of events) {
    if (event_id > through) break;
    const key = `${source} ${stream}`;
    const event_count = (rows.get(key)?.event_count ?? 0) + 1;
    rows.set(key, { source, stream, frontier_event_id: event_id, event_count });
  }
  return [...rows].sort(([a], [b]) => a < b ? -1 : 1).map(([, row]) => row);
}

/**
 * Opens a service whose log has three sources and several streams, with commits one second
 * apart. @returns the service and the last event id of each batch.
 */
export async function serviceWithStreams(storage: SimulatedDisk = new SimulatedDisk()) {
  const time = testTime();
  let nowMs = time.clockMs();
  const clockMs = () => nowMs;
  const service = await openEventLog({
    ...time,
    clockMs,
    storage,
    report: () => {},
  });
  const batches = [
    submittedBatch("a-b", "1", ["x", "y", "x"]),
    submittedBatch("a", "1", ["z", "x.y", "x"]),
    submittedBatch("a.b", "1", ["x"]),
    submittedBatch("a", "2", ["x", "x-y", "w"]),
    submittedBatch("a-b", "2", ["y"]),
  ];
  const ends: string[] = [];
  for (const batch of batches) {
    nowMs += 1000;
    const { body } = await submit(service, batch);
    ends.push(body.last_event_id as string);
  }
  return { service, storage, ends };
}
