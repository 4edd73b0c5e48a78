/** A finite replay: one page of one snapshot, and where the next page starts. */
import { REPLAY_RESPONSE_BYTES_MAX } from "../limits.ts";
import { EventScan } from "../log/read/event_scan.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import type { Replay, ReplayQuery } from "./event_log.ts";

export class SnapshotReplay implements Replay {
  readonly snapshotThroughEventId: string | null;
  readonly #after: string | undefined;
  readonly #scan: EventScan;

  constructor(snapshot: LogSnapshot, query: ReplayQuery) {
    this.snapshotThroughEventId = snapshot.frontier;
    this.#after = query.after;
    this.#scan = new EventScan(snapshot, {
      after: query.after,
      filter: query.filter,
      limitEvents: query.limitEvents,
      limitBytes: REPLAY_RESPONSE_BYTES_MAX,
    });
  }

  next(): Promise<Uint8Array | null> {
    return this.#scan.next();
  }

  get lastEventId(): string | null {
    return this.#scan.lastEventId;
  }

  get nextAfter(): string | null {
    if (this.#scan.limitReached) return this.lastEventId;
    const frontier = this.snapshotThroughEventId;
    const after = this.#after ?? null;
    if (frontier === null || (after !== null && after > frontier)) return after;
    return frontier;
  }
}
