/** One page of what a follower reads: the `events` record of the next events that match. */
import { Buffer } from "node:buffer";
import { FOLLOW_RECORD_BYTES_MAX } from "../limits.ts";
import { EventScan } from "../log/read/event_scan.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import type { EventFilter } from "../log/line/stored_line.ts";

export interface FollowPage {
  /** The `events` record with its LF; null when no event matched. */
  record: Uint8Array | null;
  /** Last event of the record; null when there is none. */
  lastEventId: string | null;
  /** Where to read on. */
  nextAfter: string | null;
  /** Whether the snapshot holds no more. */
  exhausted: boolean;
}

export interface FollowPosition {
  after: string | null;
  filter: EventFilter;
  limitEvents: number;
  phase: "snapshot" | "live";
}

/**
 * Reads the next page of a snapshot.
 * @param isWanted asked after each piece of the log; when it is not, the page ends there.
 */
export async function readFollowPage(
  snapshot: LogSnapshot,
  { after, filter, limitEvents, phase }: FollowPosition,
  isWanted: () => boolean,
): Promise<FollowPage> {
  const scan = new EventScan(snapshot, {
    after: after ?? undefined,
    filter,
    limitEvents,
    limitBytes: FOLLOW_RECORD_BYTES_MAX,
  });
  const pieces: Buffer[] = [];
  let isCutShort = false;
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    if (piece.length > 0) pieces.push(COMMA, Buffer.from(piece));
    isCutShort = !isWanted();
    if (isCutShort) break;
  }
  const exhausted = !scan.limitReached && !isCutShort;
  const { lastEventId } = scan;
  const nextAfter = exhausted ? later(snapshot.frontier, after) : lastEventId ?? after;
  const record = lastEventId === null
    ? null
    : eventsRecord(phase, pieces.slice(1), { lastEventId, nextAfter, through: snapshot.frontier });
  return { record, lastEventId, nextAfter, exhausted };
}

const COMMA = Buffer.from(",");

/** The later of two positions; null is before all. */
export function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}

/** An `events` record; `pieces` are the events joined by commas. */
export function eventsRecord(
  phase: FollowPosition["phase"],
  pieces: readonly Uint8Array[],
  at: { lastEventId: string | null; nextAfter: string | null; through: string | null },
): Uint8Array {
  const lastEventId = at.lastEventId === null ? "" : `"last_event_id":"${at.lastEventId}",`;
  return Buffer.concat([
    Buffer.from(`{"type":"events","phase":"${phase}","events":[`),
    ...pieces,
    Buffer.from(
      `],${lastEventId}"next_after":${JSON.stringify(at.nextAfter)},` +
        `"snapshot_through_event_id":${JSON.stringify(at.through)}}\n`,
    ),
  ]);
}
