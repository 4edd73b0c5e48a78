/**
 * A follow response: the snapshot, `caught_up`, then new commits until it ends. Its records are
 * requested one by one, so a session reads the log at its client's pace and holds a single record.
 * Once it has caught up, it reads only commits that match its filter (`change_signal.ts`).
 *
 * The log is read page by page. A page is an `events` record with the next matching events.
 * Followers with the same position and filter share live pages, so a commit costs one read.
 */
import { Buffer } from "node:buffer";
import type { FollowEndReason } from "../event/types.ts";
import {
  FOLLOW_POSITION_INTERVAL_MS,
  FOLLOW_RECORD_BYTES_MAX,
  LIVE_PAGES_BYTES_MAX,
} from "../limits.ts";
import type { EventFilter } from "../log/line/stored_line.ts";
import { EventScan, type ReplayQuery } from "../log/read/event_scan.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import { CorruptLogError } from "../log/storage/errors.ts";
import { LruCache } from "../lru_cache.ts";
import type { ChangeSignal, Watcher } from "./change_signal.ts";

/** State shared by all sessions of a service. */
export interface FollowHub {
  /** Returns the current durable state of the log. */
  snapshot(): LogSnapshot;
  /** Returns why sessions must end; null while the service runs. */
  ended(): { reason: FollowEndReason; detail: string } | null;
  readonly changes: ChangeSignal;
  /** The live pages that followers share. Each was read up to the newest frontier. */
  readonly livePages: LruCache<FollowPage>;
  /** Reserves the memory of a record, if there is any. @returns how to release it. */
  tryReserve(): (() => void) | null;
  /** Waits for that, or for that of a large block, while it is wanted. */
  reserve(sizeBytes: number, isWanted: () => boolean): Promise<() => void>;
  report(line: string): void;
}

export class FollowSession implements Watcher {
  readonly filter: EventFilter;
  readonly #hub: FollowHub;
  readonly #query: ReplayQuery;
  /** Dropped once delivered, since a snapshot keeps sealed files open. */
  #snapshot: LogSnapshot | null;
  #phase: "snapshot" | "caught_up" | "live" | "over" = "snapshot";
  #after: string | null;
  #lastEventId: string | null = null;
  #wake: (() => void) | null = null;
  /** Frontier before the first matching commit since the last read; undefined if there is none. */
  #matchAfter: string | null | undefined;
  /** The page whose record is being sent. */
  #page: FollowPage | null = null;
  #sentMs = performance.now();
  /** Position in the last record sent; undefined before the first. */
  #sentAfter: string | null | undefined;

  /** The session watches the hub's changes until it is over. */
  constructor(hub: FollowHub, query: ReplayQuery) {
    this.#hub = hub;
    this.#query = query;
    this.filter = query.filter;
    this.#snapshot = hub.snapshot();
    this.#after = query.after ?? null;
    hub.changes.add(this);
  }

  /** Returns the next record, one line of JSON, as soon as there is one; null after the last. */
  async next(): Promise<Uint8Array | null> {
    this.#dropPage();
    while (this.#phase !== "over") {
      const ended = this.#hub.ended();
      if (ended?.reason === "shutdown") return this.end(ended.reason, ended.detail);
      try {
        const record = await this.#advance();
        if (record === null) continue;
        this.#sentMs = performance.now();
        this.#sentAfter = this.#after;
        return record;
      } catch (error) {
        const reason = "the log could not be read";
        this.#hub.report(`follow ended, ${reason}: ${(error as Error).message}`);
        if (this.#isOver()) return null;
        const isDamaged = error instanceof CorruptLogError;
        return this.end("replay_failed", isDamaged ? `${reason}: ${error.message}` : reason);
      }
    }
    return null;
  }

  /** Ends the session and returns its last record. The one before it may still be sent. */
  end(reason: FollowEndReason, detail: string): Uint8Array {
    this.#finish();
    return line({ type: "end", reason, last_event_id: this.#lastEventId, detail });
  }

  /** Frees the session once nothing more is sent. Repeated calls do nothing. */
  close(): void {
    this.#dropPage();
    this.#finish();
  }

  #finish(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#hub.changes.remove(this);
    this.wake();
  }

  matched(before: string | null): void {
    if (this.#matchAfter === undefined) this.#matchAfter = before;
  }

  isDue(): boolean {
    return performance.now() - this.#sentMs >= FOLLOW_POSITION_INTERVAL_MS &&
      this.#phase === "live" && isAfter(this.#scannedThrough(), this.#sentAfter ?? null);
  }

  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }

  /** Advances one step; returns the record it yields, if any. */
  #advance(): Uint8Array | null | Promise<Uint8Array | null> {
    if (this.#snapshot !== null) {
      return this.#phase === "snapshot"
        ? this.#readSnapshot(this.#snapshot)
        : this.#catchUp(this.#snapshot);
    }
    this.#after = this.#scannedThrough();
    const snapshot = this.#hub.snapshot();
    if (this.isDue()) return this.#emptyRecord("live", snapshot);
    const hasMatch = this.#matchAfter !== undefined;
    if (hasMatch && isAfter(snapshot.frontier, this.#after)) return this.#readLive(snapshot);
    this.#matchAfter = undefined;
    const ended = this.#hub.ended();
    if (ended !== null) return this.end(ended.reason, ended.detail);
    return new Promise((resolve) => this.#wake = () => resolve(null));
  }

  async #readSnapshot(snapshot: LogSnapshot): Promise<Uint8Array | null> {
    const isWanted = () => !this.#isOver() && !isShutdown(this.#hub);
    const page = await readPage(this.#hub, snapshot, this.#position("snapshot"), isWanted);
    page.users = 1;
    if (!this.#moveTo(page)) return null;
    if (page.exhausted) this.#phase = "caught_up";
    // A snapshot always yields at least one record, and a long scan reports its position.
    const isReporting = this.#sentAfter === undefined || !page.exhausted;
    const isCutShort = !page.exhausted && !isWanted();
    if (page.record !== null || !isReporting || isCutShort) return page.record;
    return this.#emptyRecord("snapshot", snapshot);
  }

  #emptyRecord(phase: FollowPosition["phase"], { frontier: through }: LogSnapshot): Uint8Array {
    return eventsRecord(phase, [], { lastEventId: null, nextAfter: this.#after, through });
  }

  #catchUp({ frontier }: LogSnapshot): Uint8Array {
    this.#phase = "live";
    this.#snapshot = null;
    const position = { next_after: this.#after, snapshot_through_event_id: frontier };
    return line({ type: "caught_up", ...position });
  }

  async #readLive(snapshot: LogSnapshot): Promise<Uint8Array | null> {
    this.#matchAfter = undefined;
    const page = await readLivePage(this.#hub, snapshot, this.#position("live"));
    if (!this.#moveTo(page)) return null;
    if (!page.exhausted) this.#matchAfter = null;
    return page.record;
  }

  /** Position in the live phase: no event up to it is left to read. */
  #scannedThrough(): string | null {
    const through = this.#matchAfter === undefined ? this.#hub.changes.frontier : this.#matchAfter;
    return isAfter(through, this.#after) ? through : this.#after;
  }

  #position(phase: FollowPosition["phase"]): FollowPosition {
    const { filter, limitEvents } = this.#query;
    return { after: this.#after ?? undefined, filter, limitEvents, phase };
  }

  /** @param page counts this session as a user. @returns false if the session is over. */
  #moveTo(page: FollowPage): boolean {
    this.#page = page;
    if (this.#isOver()) {
      this.#dropPage();
      return false;
    }
    this.#after = page.nextAfter;
    this.#lastEventId = page.lastEventId ?? this.#lastEventId;
    return true;
  }

  /** Releases the memory of a large record once its last follower needs it no more. */
  #dropPage(): void {
    const page = this.#page;
    this.#page = null;
    if (page !== null && --page.users === 0) page.release();
  }

  /** Whether the session was closed, possibly during a read. */
  #isOver(): boolean {
    return this.#phase === "over";
  }
}

function isAfter(position: string | null, other: string | null): boolean {
  return (position ?? "") > (other ?? "");
}

function isShutdown(hub: FollowHub): boolean {
  return hub.ended()?.reason === "shutdown";
}

function line(record: Record<string, unknown>): Uint8Array {
  return Buffer.from(JSON.stringify(record) + "\n");
}

export interface FollowPage {
  /** The `events` record with its LF; null if no event matched. */
  record: Uint8Array | null;
  /** Last event in the record; null if there is no record. */
  lastEventId: string | null;
  /** Position of the next page. */
  nextAfter: string | null;
  /** Whether the page reaches the end of the snapshot. */
  exhausted: boolean;
  /** Number of followers that send the record, or are about to. */
  users: number;
  /** Releases the memory reserved for a large record. */
  release(): void;
}

/** The query and phase of a page. */
export interface FollowPosition extends ReplayQuery {
  phase: "snapshot" | "live";
}

const COMMA = Buffer.from(",");

/** While there is no memory for longer records, a record is at most this long, or one event. */
const SHORT_RECORD_BYTES_MAX = 32 * 1024;

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
  reserve: FollowHub["reserve"],
  limitBytes: number = FOLLOW_RECORD_BYTES_MAX,
): Promise<FollowPage> {
  const dueMs = performance.now() + FOLLOW_POSITION_INTERVAL_MS;
  const scan = new EventScan(snapshot, {
    ...query,
    limitBytes,
    isEnough: () => performance.now() >= dueMs,
    client: () => isWanted() ? "here" : "gone",
    reserve: (sizeBytes) => reserve(sizeBytes, isWanted),
  });
  const pieces: Buffer[] = [];
  let release = () => {};
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    if (piece.length > FOLLOW_RECORD_BYTES_MAX) {
      // One event, the only one. Its block is held until the record has been sent.
      release = scan.takeReservation();
      pieces.push(COMMA, piece);
      break;
    }
    if (piece.length > 0) pieces.push(COMMA, Buffer.from(piece));
  }
  const isCutShort = !isWanted();
  const { lastEventId } = scan;
  const nextAfter = isCutShort ? lastEventId ?? query.after ?? null : scan.nextAfter;
  const at = { lastEventId, nextAfter, through: snapshot.frontier };
  const record = lastEventId === null ? null : eventsRecord(phase, pieces.slice(1), at);
  const exhausted = !scan.limitReached && !isCutShort;
  scan.close();
  return { record, lastEventId, nextAfter, exhausted, users: 0, release };
}

/** Reads a page and holds the memory of its record, or reads a short one if there is none. */
async function readPage(
  { tryReserve, reserve }: FollowHub,
  snapshot: LogSnapshot,
  position: FollowPosition,
  isWanted: () => boolean,
): Promise<FollowPage> {
  for (let release = tryReserve();; release = await reserve(FOLLOW_RECORD_BYTES_MAX, isWanted)) {
    const limitBytes = release === null ? SHORT_RECORD_BYTES_MAX / 2 : undefined;
    const reading = readFollowPage(snapshot, position, isWanted, reserve, limitBytes);
    const page = await reading.catch((error) => {
      release?.();
      throw error;
    });
    const releaseBlock = page.release;
    page.release = () => {
      releaseBlock();
      release?.();
    };
    const isShort = (page.record?.length ?? 0) <= SHORT_RECORD_BYTES_MAX;
    if (!isShort && release !== null) return page;
    page.release();
    if (isShort) return page;
    // One event: it is read again once there is memory.
  }
}

/** Creates an `events` record; `pieces` are the events joined by commas. */
function eventsRecord(
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

export function createLivePages(): LruCache<FollowPage> {
  return new LruCache(LIVE_PAGES_BYTES_MAX, pageBytes);
}

/** All that wait for a page count as its users before the first of them can release it. */
export async function readLivePage(
  hub: FollowHub,
  snapshot: LogSnapshot,
  position: FollowPosition,
): Promise<FollowPage> {
  const isWanted = () => !isShutdown(hub);
  const read = () => readPage(hub, snapshot, position, isWanted);
  const key = JSON.stringify([snapshot.frontier, position]);
  const page = await hub.livePages.load(key, read);
  page.users += 1;
  // A page over the limit is shared only while it is read.
  if (pageBytes(page) > LIVE_PAGES_BYTES_MAX) hub.livePages.delete(key);
  return page;
}

function pageBytes({ record }: FollowPage): number {
  return PAGE_OVERHEAD_BYTES + (record?.length ?? 0);
}
