/** The operations of the service on an open log, called by the HTTP layer. */
import { setTimeout as delay } from "node:timers/promises";
import { ApiError } from "../event/api_error.ts";
import type { PreparedBatch, Receipt, RetirementReceipt } from "../event/types.ts";
import {
  FOLLOW_RECORD_BYTES_MAX,
  FOLLOWERS_MAX,
  LARGE_BLOCK_BYTES_MAX,
  REPLAY_RESPONSE_BYTES_MAX,
  RESPONSE_BYTES_MAX,
} from "../limits.ts";
import { type Log, type LogOptions, openLog } from "../log/log.ts";
import { type ClientState, EventScan, type ReplayQuery } from "../log/read/event_scan.ts";
import { Admission } from "./admission.ts";
import { BacklogGate } from "./backlog_gate.ts";
import { BatchPreparer } from "./batch_preparer.ts";
import { ChangeSignal } from "./change_signal.ts";
import { createLivePages, type FollowHub, FollowSession } from "./follow.ts";
import { LogState } from "./log_state.ts";
import { appendMutation, retireMutation } from "./mutation.ts";
import { StreamPages, type StreamsPage, type StreamsQuery } from "./streams.ts";
import { WriterQueue } from "./writer_queue.ts";

/** How long a follower that has found no memory waits before it asks again. */
const FOLLOW_RESERVE_INTERVAL_MS = 100;

/** The members that the HTTP layer needs. */
export type EventLog = Pick<
  EventLogService,
  "ingest" | "retire" | "replay" | "follow" | "streams" | "isPoisoned"
>;

/** A finite replay of one snapshot, piece by piece. */
export type Replay = Pick<
  EventScan,
  "snapshotThroughEventId" | "lastEventId" | "nextAfter" | "next" | "close"
>;

/** A follow response, record by record. */
export type Follow = Pick<FollowSession, "next" | "end" | "close">;

/** Opens a log as its writer, see `openLog()`. The caller holds the writer lock. */
export async function openEventLog(options: LogOptions): Promise<EventLogService> {
  const log = await openLog(options);
  return new EventLogService(log, options);
}

export class EventLogService {
  readonly #log: Log;
  readonly #state: LogState;
  readonly #preparer = new BatchPreparer();
  readonly gate: BacklogGate;
  readonly #changes: ChangeSignal;
  readonly #queue: WriterQueue;
  readonly #streamPages: StreamPages;
  readonly #hub: FollowHub;
  readonly #largeBlocks = new Admission({
    totalBytes: 2 * LARGE_BLOCK_BYTES_MAX,
    bodyBytes: LARGE_BLOCK_BYTES_MAX,
  });
  readonly #records = new Admission({
    totalBytes: RESPONSE_BYTES_MAX,
    bodyBytes: FOLLOW_RECORD_BYTES_MAX,
  });
  readonly #receipts = { batches: 0, events: 0, duplicates: 0 };
  #shuttingDown = false;

  constructor(log: Log, { report, sealing }: LogOptions) {
    this.#log = log;
    this.#state = new LogState(log.files);
    this.gate = new BacklogGate(log.sealer, sealing?.backlogWaitMs);
    this.#changes = new ChangeSignal(log.snapshot.frontier);
    this.#queue = new WriterQueue(log, report, this.#changes);
    this.#streamPages = new StreamPages(log.files);
    this.#hub = {
      snapshot: () => log.snapshot,
      ended: () => this.#followEnd(),
      changes: this.#changes,
      livePages: createLivePages(),
      tryReserve: () => {
        const held = this.#records.tryAdmit(FOLLOW_RECORD_BYTES_MAX);
        return held && (() => this.#records.release(held));
      },
      reserve: (bytes, isWanted) => this.#reserveWhile(bytes, isWanted),
      report,
    };
  }

  /** Counters and sizes for operator reports, with the member names used there. */
  get size() {
    return { ...this.#receipts, followers: this.#changes.watchers, ...this.#log.size };
  }

  /** The last durable event's id; null for an empty log. */
  get frontier(): string | null {
    return this.#log.snapshot.frontier;
  }

  /** Whether mutations get `writer_poisoned` until a restart. */
  get isPoisoned(): boolean {
    return this.#queue.stopped || this.#log.storage.loss !== null;
  }

  /** Whether new batches wait for sealing. A stopped writer refuses them at once. */
  get #mustWait(): boolean {
    return this.gate.isClosed && !this.isPoisoned;
  }

  /**
   * Commits the batch in a request body durably, or returns the receipt for its earlier commit.
   * @throws {ApiError}
   */
  async ingest(body: Uint8Array): Promise<Receipt> {
    if (this.#mustWait) {
      const receipt = await this.#repeat(body);
      if (receipt !== null) return receipt;
      await this.gate.pass(body.length);
    }
    const { batch, release } = await this.#preparer.prepare(body);
    try {
      return this.#count(await this.append(batch));
    } finally {
      release();
    }
  }

  /** Commits a batch durably, or returns the receipt for its earlier commit. */
  append(batch: PreparedBatch): Promise<Receipt> {
    return this.#queue.submit(appendMutation(batch));
  }

  #count(receipt: Receipt): Receipt {
    const isNew = receipt.status === "committed";
    this.#receipts[isNew ? "batches" : "duplicates"] += 1;
    if (isNew) this.#receipts.events += receipt.events;
    return receipt;
  }

  /** Retires a source, or returns the receipt for its retirement. */
  async retire(source: string): Promise<RetirementReceipt> {
    const mustWait = this.#mustWait && await this.#state.findRetirement(source) === null;
    if (mustWait) await this.gate.pass(0);
    return await this.#queue.submit(retireMutation(source));
  }

  /**
   * Answers a retry of a committed batch; returns null for a new one, which takes no memory while
   * it waits: it is prepared again, and first from a copy.
   */
  async #repeat(body: Uint8Array): Promise<Receipt | null> {
    const { batch, release } = await this.#preparer.prepare(new Uint8Array(body));
    try {
      const known = await this.#state.findBatch(batch.source, batch.batchId);
      return known === null ? null : this.#count(await this.append(batch));
    } finally {
      release();
    }
  }

  /** @param client returns the state of the client; the replay ends once it is gone. */
  replay(query: ReplayQuery, client: () => ClientState = () => "here"): Replay {
    const reserve = (bytes: number) => this.#reserve(bytes);
    const limits = { limitBytes: REPLAY_RESPONSE_BYTES_MAX, client, reserve };
    return new EventScan(this.#log.snapshot, { ...query, ...limits });
  }

  /** Reserves the memory of a large block, or of a record. @throws {ApiError} `overloaded`. */
  async #reserve(sizeBytes: number): Promise<() => void> {
    const memory = sizeBytes > FOLLOW_RECORD_BYTES_MAX ? this.#largeBlocks : this.#records;
    const held = await memory.admit(Math.min(sizeBytes, LARGE_BLOCK_BYTES_MAX));
    return () => memory.release(held);
  }

  /** Does the same for a follower, which waits as long as it is there. */
  async #reserveWhile(sizeBytes: number, isWanted: () => boolean): Promise<() => void> {
    while (isWanted()) {
      try {
        return await this.#reserve(sizeBytes);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        await delay(FOLLOW_RESERVE_INTERVAL_MS);
      }
    }
    return () => {};
  }

  /** @throws {ApiError} `overloaded` if there are too many followers. */
  follow(query: ReplayQuery): Follow {
    if (this.#changes.watchers >= FOLLOWERS_MAX) {
      throw new ApiError("overloaded", `limit of ${FOLLOWERS_MAX} followers reached; retry later`);
    }
    return new FollowSession(this.#hub, query);
  }

  /** @throws {ApiError} `stream_anchor_unavailable`. */
  streams(query: StreamsQuery): Promise<StreamsPage> {
    return this.#streamPages.page(query);
  }

  /** Ends every follow response with `shutdown`, and every wait for sealing. */
  endFollowers(): void {
    this.#shuttingDown = true;
    this.gate.endWaits();
    this.#changes.fire();
  }

  /** See `OwnedStorage`. */
  findLoss(): Promise<string | null> {
    return this.#log.storage.findLoss();
  }

  /** Closes the log once all submitted mutations have completed. */
  async close(): Promise<void> {
    this.endFollowers();
    await this.#queue.close();
    try {
      await this.#log.close();
    } finally {
      await this.#preparer.close();
    }
  }

  #followEnd(): ReturnType<FollowHub["ended"]> {
    if (this.#shuttingDown) return { reason: "shutdown", detail: "the service is shutting down" };
    if (!this.#queue.stopped) return null;
    return { reason: "writer_poisoned", detail: "the writer stopped; restart the service" };
  }
}
