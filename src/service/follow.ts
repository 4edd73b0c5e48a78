/**
 * One follow response: the snapshot, `caught_up`, then what is committed from then on, until it
 * ends. A session is asked for its records one by one, so it reads the log at the pace of its
 * client and holds one record at a time.
 */
import { Buffer } from "node:buffer";
import type { FollowEndReason } from "../event/types.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import type { ChangeSignal } from "./change_signal.ts";
import type { ReplayQuery } from "./event_log.ts";
import { eventsRecord, type FollowPage, later, readFollowPage } from "./follow_page.ts";
import { type LivePages, liveQueryKey } from "./live_pages.ts";

/** What all sessions of a service share. */
export interface FollowHub {
  /** What is durable now. */
  snapshot(): LogSnapshot;
  /** Why sessions end now; null while the service runs. */
  ended(): { reason: FollowEndReason; detail: string } | null;
  readonly changes: ChangeSignal;
  readonly livePages: LivePages;
  /** Receives sentences for the operator. */
  report(line: string): void;
}

export class FollowSession {
  readonly #hub: FollowHub;
  readonly #query: ReplayQuery;
  readonly #queryKey: string;
  /** Dropped once all of it is delivered: it holds on to files that are sealed meanwhile. */
  #snapshot: LogSnapshot | null;
  readonly #onClose: () => void;
  #phase: "snapshot" | "caught_up" | "live" | "over" = "snapshot";
  #after: string | null;
  #lastEventId: string | null = null;
  #anyRecord = false;
  #wake: (() => void) | null = null;

  /** @param onClose called once, when the session needs nothing any more. */
  constructor(hub: FollowHub, query: ReplayQuery, onClose: () => void) {
    this.#hub = hub;
    this.#query = query;
    this.#queryKey = liveQueryKey(query);
    this.#snapshot = hub.snapshot();
    this.#after = query.after ?? null;
    this.#onClose = onClose;
  }

  /**
   * The next record, one line of JSON; null after the last. Waits for a commit when all is
   * delivered.
   */
  async next(): Promise<Uint8Array | null> {
    while (this.#phase !== "over") {
      const ended = this.#hub.ended();
      if (ended?.reason === "shutdown") return this.end(ended.reason, ended.detail);
      try {
        const step = this.#advance();
        const record = step instanceof Promise ? await step : step;
        if (record !== null) return record;
      } catch (error) {
        return this.#fail(error);
      }
    }
    return null;
  }

  /** Ends the session and gives its last record. */
  end(reason: FollowEndReason, detail: string): Uint8Array {
    this.close();
    return line({ type: "end", reason, last_event_id: this.#lastEventId, detail });
  }

  /** Frees the session: its client is gone or has been told the end. */
  close(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    if (this.#wake !== null) {
      this.#hub.changes.remove(this.#wake);
      this.#wake();
    }
    this.#onClose();
  }

  /** The last record after a failure; null when the client has gone already. */
  #fail(error: unknown): Uint8Array | null {
    this.#hub.report(`follow ended, the log could not be read: ${(error as Error).message}`);
    if (this.#phase === "over") return null;
    return this.end("replay_failed", "the log could not be read");
  }

  /**
   * One step; the record it gives, if any. Without a promise where there is nothing to wait for.
   */
  #advance(): Uint8Array | null | Promise<Uint8Array | null> {
    if (this.#snapshot !== null) {
      return this.#phase === "snapshot"
        ? this.#readSnapshot(this.#snapshot)
        : this.#catchUp(this.#snapshot);
    }
    const snapshot = this.#hub.snapshot();
    if (snapshot.frontier !== null && later(snapshot.frontier, this.#after) !== this.#after) {
      return this.#readLive(snapshot);
    }
    const ended = this.#hub.ended();
    if (ended !== null) return this.end(ended.reason, ended.detail);
    return this.#changed();
  }

  async #readSnapshot(snapshot: LogSnapshot): Promise<Uint8Array | null> {
    const { filter, limitEvents } = this.#query;
    const position = { after: this.#after, filter, limitEvents, phase: "snapshot" as const };
    const page = await readFollowPage(snapshot, position, () => this.#goesOn());
    const isCutShort = page.record === null && !page.exhausted;
    if (this.#phase !== "snapshot" || isCutShort) return null;
    if (page.exhausted) this.#phase = "caught_up";
    const first = !this.#anyRecord;
    this.#moveTo(page);
    if (page.record !== null || !first) return page.record;
    const through = snapshot.frontier;
    return eventsRecord("snapshot", [], { lastEventId: null, nextAfter: this.#after, through });
  }

  #catchUp({ frontier }: LogSnapshot): Uint8Array {
    this.#phase = "live";
    this.#snapshot = null;
    return line({
      type: "caught_up",
      next_after: this.#after,
      snapshot_through_event_id: frontier,
    });
  }

  #readLive(snapshot: LogSnapshot): Uint8Array | null | Promise<Uint8Array | null> {
    const { filter, limitEvents } = this.#query;
    const position = { after: this.#after, filter, limitEvents, phase: "live" as const };
    const page = this.#hub.livePages.read(snapshot, position, this.#queryKey, () => {
      return !isShutdown(this.#hub);
    });
    return page instanceof Promise
      ? page.then((read) => this.#takeLive(read))
      : this.#takeLive(page);
  }

  #takeLive(page: FollowPage): Uint8Array | null {
    if (this.#phase !== "live") return null;
    this.#moveTo(page);
    return page.record;
  }

  #moveTo(page: FollowPage): void {
    this.#anyRecord = true;
    this.#after = page.nextAfter;
    this.#lastEventId = page.lastEventId ?? this.#lastEventId;
  }

  /** Whether anybody waits for more of the log. */
  #goesOn(): boolean {
    return this.#phase !== "over" && !isShutdown(this.#hub);
  }

  #changed(): Promise<null> {
    return new Promise((resolve) => {
      this.#wake = () => resolve(null);
      this.#hub.changes.add(this.#wake);
    });
  }
}

function isShutdown(hub: FollowHub): boolean {
  return hub.ended()?.reason === "shutdown";
}

function line(record: Record<string, unknown>): Uint8Array {
  return Buffer.from(JSON.stringify(record) + "\n");
}
