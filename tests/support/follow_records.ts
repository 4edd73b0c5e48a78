/** Parses the records in a follow response. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { Follow } from "../../src/service/event_log.ts";
import type { ReplayQuery } from "../../src/log/read/event_scan.ts";

export interface EventsRecord {
  type: "events";
  phase: "snapshot" | "live";
  events: CommittedEvent[];
  last_event_id?: string;
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

export interface CaughtUpRecord {
  type: "caught_up";
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

export interface EndRecord {
  type: "end";
  reason: string;
  last_event_id: string | null;
  detail?: string;
}

export type FollowRecord = EventsRecord | CaughtUpRecord | EndRecord;

/** A query that follows all events from the beginning. */
export const FOLLOW_ALL: ReplayQuery = { after: undefined, filter: {}, limitEvents: 1000 };

/** The next record, which must be a single line. */
export async function nextRecord(follow: Follow): Promise<FollowRecord> {
  const bytes = await follow.next();
  assert.ok(bytes !== null, "another record follows");
  const text = Buffer.from(bytes).toString();
  assert.equal(text.indexOf("\n"), text.length - 1);
  return JSON.parse(text);
}

/** The next record, which must contain events. */
export async function nextEvents(follow: Follow): Promise<EventsRecord> {
  const record = await nextRecord(follow);
  assert.equal(record.type, "events", JSON.stringify(record));
  return record as EventsRecord;
}

/** The records in the snapshot, and the `caught_up` record that ends it. */
export async function snapshotRecords(
  follow: Follow,
): Promise<{ snapshot: EventsRecord[]; caughtUp: CaughtUpRecord }> {
  const snapshot: EventsRecord[] = [];
  for (;;) {
    const record = await nextRecord(follow);
    assert.notEqual(record.type, "end", JSON.stringify(record));
    if (record.type === "caught_up") return { snapshot, caughtUp: record };
    snapshot.push(record as EventsRecord);
  }
}

/** The ids of the events in records. */
export function idsOf(...records: EventsRecord[]): string[] {
  return records.flatMap(({ events }) => events.map((event) => event.event_id));
}
