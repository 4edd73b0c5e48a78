/**
 * Reads the log for followers page by page. A page is an `events` record with the next matching
 * events. Followers with the same position and filter share live pages, so a commit costs one read.
 */
import { Buffer } from "node:buffer";
import {
  FOLLOW_POSITION_INTERVAL_MS,
  FOLLOW_RECORD_BYTES_MAX,
  LIVE_PAGES_BYTES_MAX,
} from "../limits.ts";
import { EventScan, type ReplayQuery } from "../log/read/event_scan.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import { LruCache } from "../lru_cache.ts";

export interface FollowPage {
  /** The `events` record with its LF; null if no event matched. */
  record: Uint8Array | null;
  /** Last event in the record; null if there is no record. */
  lastEventId: string | null;
  /** Position of the next page. */
  nextAfter: string | null;
  /** Whether the page reaches the end of the snapshot. */
  exhausted: boolean;
}

/** The query and phase of a page. */
export interface FollowPosition extends ReplayQuery {
  phase: "snapshot" | "live";
}

const COMMA = Buffer.from(",");

/** Approximate memory for a page without its record. */
const PAGE_OVERHEAD_BYTES = 512;

/**
 * Reads the next page from a snapshot, for FOLLOW_POSITION_INTERVAL_MS and up to the end of a file.
 * @param isWanted called before each block of the log; the page ends once it returns false.
 */
export async function readFollowPage(
  snapshot: LogSnapshot,
  { phase, ...query }: FollowPosition,
  isWanted: () => boolean,
): Promise<FollowPage> {
  const dueMs = performance.now() + FOLLOW_POSITION_INTERVAL_MS;
  const isEnough = () => performance.now() >= dueMs;
  const limits = { limitBytes: FOLLOW_RECORD_BYTES_MAX, isEnough };
  const client = () => isWanted() ? "here" : "gone";
  const scan = new EventScan(snapshot, { ...query, ...limits, client });
  const pieces: Buffer[] = [];
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    if (piece.length > 0) pieces.push(COMMA, Buffer.from(piece));
  }
  const isCutShort = !isWanted();
  const { lastEventId } = scan;
  const nextAfter = isCutShort ? lastEventId ?? query.after ?? null : scan.nextAfter;
  const at = { lastEventId, nextAfter, through: snapshot.frontier };
  const record = lastEventId === null ? null : eventsRecord(phase, pieces.slice(1), at);
  return { record, lastEventId, nextAfter, exhausted: !scan.limitReached && !isCutShort };
}

/** Creates an `events` record; `pieces` are the events joined by commas. */
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

/** The live pages that followers share. Each page was read up to the newest frontier. */
export class LivePages {
  readonly #pages = new LruCache<FollowPage>(LIVE_PAGES_BYTES_MAX, pageBytes);

  /** See `readFollowPage()`; `isWanted` must be the same for all followers. */
  async read(
    snapshot: LogSnapshot,
    position: FollowPosition,
    isWanted: () => boolean,
  ): Promise<FollowPage> {
    const key = JSON.stringify([snapshot.frontier, position]);
    const page = await this.#pages.load(key, () => readFollowPage(snapshot, position, isWanted));
    // A page over the limit is shared only while it is read.
    if (pageBytes(page) > LIVE_PAGES_BYTES_MAX) this.#pages.delete(key);
    return page;
  }
}

function pageBytes({ record }: FollowPage): number {
  return PAGE_OVERHEAD_BYTES + (record?.length ?? 0);
}
