/** Reads of whole logs: all streams, and all events. */
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLog } from "../../src/service/event_log.ts";
import type { StreamsQuery } from "../../src/service/streams.ts";
import { joinPieces } from "./test_log.ts";

/** A query for all streams in one page. */
export const ALL_STREAMS: StreamsQuery = {
  source: undefined,
  after: undefined,
  through: undefined,
  limit: 1000,
};

/** All events in the log. */
export async function replayAll(service: EventLog): Promise<CommittedEvent[]> {
  return JSON.parse(`[${await replayText(service)}]`);
}

/** All events after a given one, in replay format. */
export function replayText(log: EventLog, after?: string): Promise<string> {
  return joinPieces(log.replay({ after, filter: {}, limitEvents: Infinity }));
}
