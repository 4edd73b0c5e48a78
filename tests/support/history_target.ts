/**
 * What a random history is run against: the service in this process, or one behind a socket.
 * Answers are null where there is none, because the service was killed.
 */
import type { StreamSummary } from "../../src/event/types.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { Outcome } from "./outcome.ts";
import type { SubmittedBatch } from "./submitted.ts";

export interface HistoryTarget {
  append(batch: SubmittedBatch): Promise<Outcome | null>;
  retire(source: string): Promise<Outcome | null>;
  /** All events there are. */
  events(): Promise<CommittedEvent[]>;
  /** All streams there are. */
  streams(): Promise<StreamSummary[]>;
  /** Shuts the service down in order and starts it again; mutations wait for it. */
  restart(): Promise<void>;
  /** Kills the service, machine and all, and starts it again. */
  kill(): Promise<void>;
  /** Shuts it down, seals the log and starts it again. */
  seal(): Promise<void>;
  /** Makes the disk fail once, soon. Absent where that cannot be done. */
  failDisk?(how: DiskFailure): void;
}

/** The next write finds no room, or the next fsync fails: then only a new start helps. */
export type DiskFailure = "no_room" | "failed_sync";
