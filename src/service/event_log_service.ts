/** The service over one open log: what the HTTP layer calls. */
import type { PreparedBatch, Receipt } from "../event/types.ts";
import { type Log, type LogOptions, openLog } from "../log/log.ts";
import { BatchIndex } from "./batch_index.ts";
import type { EventLog, Replay, ReplayQuery } from "./event_log.ts";
import { SnapshotReplay } from "./replay.ts";
import { WriterQueue } from "./writer_queue.ts";

export interface ServiceOptions extends Omit<LogOptions, "listener"> {
  /** Receives sentences for the operator, without payloads. */
  report: (line: string) => void;
}

/**
 * Opens the log in a folder as its writer. The caller holds the writer lock.
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the folder.
 */
export async function openEventLog(options: ServiceOptions): Promise<EventLogService> {
  const { report } = options;
  const index = new BatchIndex();
  const listener = { batch: index.add.bind(index), report };
  const log = await openLog({ ...options, listener });
  return new EventLogService(log, new WriterQueue(log, index, report));
}

export class EventLogService implements EventLog {
  readonly #log: Log;
  readonly #queue: WriterQueue;

  constructor(log: Log, queue: WriterQueue) {
    this.#log = log;
    this.#queue = queue;
  }

  append(batch: PreparedBatch): Promise<Receipt> {
    return this.#queue.submit(batch);
  }

  replay(query: ReplayQuery): Replay {
    return new SnapshotReplay(this.#log.snapshot, query);
  }

  /** Ends the service: batches already submitted reach their outcome first. */
  async close(): Promise<void> {
    await this.#queue.drain();
    await this.#log.close();
  }
}
