/**
 * A follow response: the snapshot, `caught_up`, then new commits until it ends. Its records are
 * requested one by one, so a session reads the log at its client's pace and holds a single record.
 * Once it has caught up, it reads only commits that match its filter (`change_signal.ts`).
 */
import { Buffer } from "node:buffer";
import type { FollowEndReason } from "../event/types.ts";
import { FOLLOW_POSITION_INTERVAL_MS } from "../limits.ts";
import type { EventFilter } from "../log/line/stored_line.ts";
import type { ReplayQuery } from "../log/read/event_scan.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import { CorruptLogError } from "../log/storage/errors.ts";
import type { ChangeSignal, Watcher } from "./change_signal.ts";
import {
  eventsRecord,
  type FollowPage,
  type FollowPosition,
  type LivePages,
  readFollowPage,
} from "./follow_page.ts";

/** State shared by all sessions of a service. */
export interface FollowHub {
  /** Returns the current durable state of the log. */
  snapshot(): LogSnapshot;
  /** Returns why sessions must end; null while the service runs. */
  ended(): { reason: FollowEndReason; detail: string } | null;
  readonly changes: ChangeSignal;
  readonly livePages: LivePages;
  report(line: string): void;
}

export class FollowSession implements Watcher {
  readonly filter: EventFilter;
  readonly #hub: FollowHub;
  readonly #query: ReplayQuery;
  /** Dropped once delivered, since a snapshot keeps sealed files open. */
  #snapshot: LogSnapshot | null;
  readonly #onClose: () => void;
  #phase: "snapshot" | "caught_up" | "live" | "over" = "snapshot";
  #after: string | null;
  #lastEventId: string | null = null;
  #wake: (() => void) | null = null;
  /** Frontier before the first matching commit since the last read; undefined if there is none. */
  #matchAfter: string | null | undefined;
  #sentMs = performance.now();
  /** Position in the last record sent; undefined before the first. */
  #sentAfter: string | null | undefined;

  /** @param onClose called once when the session is over. */
  constructor(hub: FollowHub, query: ReplayQuery, onClose: () => void) {
    this.#hub = hub;
    this.#query = query;
    this.filter = query.filter;
    this.#snapshot = hub.snapshot();
    this.#after = query.after ?? null;
    this.#onClose = onClose;
    hub.changes.add(this);
  }

  /** Returns the next record, one line of JSON, as soon as there is one; null after the last. */
  async next(): Promise<Uint8Array | null> {
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

  /** Ends the session and returns its last record. */
  end(reason: FollowEndReason, detail: string): Uint8Array {
    this.close();
    return line({ type: "end", reason, last_event_id: this.#lastEventId, detail });
  }

  /** Frees the session after its client has disconnected. Repeated calls do nothing. */
  close(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#hub.changes.remove(this);
    this.wake();
    this.#onClose();
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
    const page = await readFollowPage(snapshot, this.#position("snapshot"), isWanted);
    const isCutShort = page.record === null && !page.exhausted && !isWanted();
    if (this.#phase !== "snapshot" || isCutShort) return null;
    if (page.exhausted) this.#phase = "caught_up";
    this.#moveTo(page);
    // A snapshot always yields at least one record, and a long scan reports its position.
    const isReporting = this.#sentAfter === undefined || !page.exhausted;
    return page.record ?? (isReporting ? this.#emptyRecord("snapshot", snapshot) : null);
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
    const isWanted = () => !isShutdown(this.#hub);
    this.#matchAfter = undefined;
    const page = await this.#hub.livePages.read(snapshot, this.#position("live"), isWanted);
    if (this.#isOver()) return null;
    this.#moveTo(page);
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

  #moveTo(page: FollowPage): void {
    this.#after = page.nextAfter;
    this.#lastEventId = page.lastEventId ?? this.#lastEventId;
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
