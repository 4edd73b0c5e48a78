/** Client for the event log service, with one method per operation. */
import type {
  CommittedEvent,
  Receipt,
  RetirementReceipt,
  StreamPrecondition,
  SubmittedEvent,
} from "../event/types.ts";
import { batchBody, type EncodedBatch, encodeEvent } from "./encoded_batch.ts";
import { EventWriter, type WriterOptions } from "./event_writer.ts";
import { Follower, type FollowItem, type FollowOptions } from "./follow.ts";
import { lookUp } from "./position.ts";
import {
  type ReplayOptions,
  replayPages,
  reportPositions,
  type StreamsOptions,
  streamsPages,
  type StreamsSnapshot,
} from "./replay.ts";
import {
  type ApiRequest,
  type EventLogClientOptions,
  refuseUnknown,
  Transport,
} from "./transport.ts";
import type { Fetch } from "./unix_fetch.ts";
import { type FollowRecord, type ReplayPage, toReceipt } from "./wire.ts";

const CLIENT_OPTIONS = "token attemptsMax writeTimeoutMs readTimeoutMs socketWaitMs onRetry timing";

/** A batch of events, committed atomically and only once per `(source, batchId)`. */
export interface Batch {
  /** The submitting source: `[a-z0-9_][a-z0-9_.-]*`, at most 128 bytes; not `system`. */
  source: string;
  /**
   * Permanent id of the batch within its source: 1 to 256 bytes of UTF-8, not starting with
   * `service/`. A restarted connector should derive the same id for the same events.
   */
  batchId: string;
  /** 1 to 10,000 events, in order. */
  events: readonly SubmittedEvent[];
  /** Commits the batch only if the stream ends with the expected event. */
  precondition?: StreamPrecondition;
}

/** Options for a single call. */
export interface CallOptions {
  /** Cancels the call, which then throws the signal's abort reason. */
  signal?: AbortSignal | undefined;
}

/**
 * A client for one service. All requests are idempotent, so lost connections and 429s are retried
 * within limits; other errors are thrown immediately.
 *
 * All methods throw {@linkcode EventLogError} when the service returns an error,
 * {@linkcode ConnectionError} when no attempt got a response, {@linkcode ProtocolError} when a
 * response violates the protocol, `TypeError` for an unknown option, and the abort reason when the
 * signal is aborted. Reads also throw {@linkcode PositionError} and {@linkcode AlteredEventError}.
 */
export class EventLogClient {
  readonly #transport: Transport;

  /**
   * Creates a client. It connects on its first request.
   * @param fetch Sends requests to the service, usually `unixFetch(socketPath)`.
   * @throws {TypeError} if `fetch` is not a function, the token is not a valid header value, or an
   *   option is unknown.
   */
  constructor(fetch: Fetch, options: EventLogClientOptions = {}) {
    refuseUnknown("EventLogClient", options, CLIENT_OPTIONS);
    this.#transport = new Transport(fetch, options);
  }

  /**
   * Appends a batch durably and atomically. If the batch is already committed, because this client
   * or the caller retried it, returns `duplicate` and the original receipt.
   *
   * After a `ConnectionError` the batch may or may not be committed: append it again, unchanged.
   *
   * @throws {TypeError} if JSON cannot represent the batch.
   */
  async append(batch: Batch, options: CallOptions = {}): Promise<Receipt> {
    refuseUnknown("append()", batch, "source batchId events precondition");
    refuseUnknown("append()", options, "signal");
    if (!Array.isArray(batch.events)) throw new TypeError("append() expects an array of events");
    return await this.appendEncoded({ ...batch, events: batch.events.map(encodeEvent) }, options);
  }

  /**
   * Creates a writer, which takes the events of a source one by one and appends them in batches.
   * @throws {TypeError} if an option is unknown, or `source` is missing.
   */
  writer(options: WriterOptions): EventWriter {
    return new EventWriter(
      (batch) => this.appendEncoded(batch, { signal: options.signal }),
      options,
    );
  }

  /**
   * Retires a source, which then accepts no more batches. A repeated call, for example after a lost
   * response, returns `already_retired` with the same values.
   */
  async retire(source: string, options: CallOptions = {}): Promise<RetirementReceipt> {
    refuseUnknown("retire()", options, "signal");
    const body = new TextEncoder().encode(JSON.stringify({ v: 1, source }));
    const request: ApiRequest = { method: "POST", path: "/v1/sources/retire", body };
    const receipt = await this.#transport.request(request, options.signal);
    const names = ["status", "final_frontier", "retirement_event_id"] as const;
    return toReceipt<RetirementReceipt>(receipt, names);
  }

  /**
   * Yields the events in a snapshot of the log, in order. To resume later, persist the positions
   * that `onPosition` gets, or those of {@linkcode EventLogClient.replayPages}.
   * @template Payload type of the payloads; not checked at run time.
   */
  async *replay<Payload = unknown>(
    options: ReplayOptions = {},
  ): AsyncGenerator<CommittedEvent<Payload>, void> {
    for await (const { events } of this.replayPages<Payload>(options)) {
      for (const event of events) {
        yield event;
        options.signal?.throwIfAborted();
      }
    }
  }

  /**
   * Yields the events in pages. All pages belong to the snapshot of the first page, so the replay
   * ends no matter how fast the log grows.
   *
   * @example A consumer that resumes where it stopped
   * ```ts
   * import { EventLogClient, unixFetch } from "@ground/service";
   *
   * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
   * let position: string | null = null;
   * for await (const { events, nextAfter } of client.replayPages({ after: position })) {
   *   console.log(`${events.length} events`);
   *   position = nextAfter; // Persist it together with the results of processing the events.
   * }
   * ```
   */
  replayPages<Payload = unknown>(
    options: ReplayOptions = {},
  ): AsyncGenerator<ReplayPage<Payload>, void> {
    return reportPositions(replayPages<Payload>(this.#transport, options), options);
  }

  /**
   * Yields the events in the log, then `caught_up`, then new events as they are committed. After a
   * lost connection, the client reconnects and yields missed events in a new `snapshot` phase. If
   * the service ends the response and no reconnect follows, the last item is `end` with the reason.
   */
  async *follow<Payload = unknown>(
    options: FollowOptions = {},
  ): AsyncGenerator<FollowItem<Payload>, void> {
    for await (const record of this.followRecords<Payload>(options)) {
      if (record.type !== "events") yield record;
      else {
        for (const event of record.events) {
          yield { type: "event", phase: record.phase, event };
          options.signal?.throwIfAborted();
        }
      }
    }
  }

  /**
   * Follows the log record by record, for consumers that process events in transactions. A record
   * can contain several events, and has the `nextAfter` to persist.
   */
  followRecords<Payload = unknown>(
    options: FollowOptions = {},
  ): AsyncGenerator<FollowRecord<Payload>, void> {
    return reportPositions(new Follower<Payload>(this.#transport, options).records(), options);
  }

  /** Lists all streams, with their latest events and event counts, as of one snapshot. */
  async streams(options: StreamsOptions = {}): Promise<StreamsSnapshot> {
    const all: StreamsSnapshot = { streams: [], snapshotThroughEventId: null };
    for await (const page of this.streamsPages(options)) {
      for (const row of page.streams) all.streams.push(row);
      all.snapshotThroughEventId = page.snapshotThroughEventId;
    }
    return all;
  }

  /** @internal Lists all streams page by page. */
  streamsPages(options: StreamsOptions): AsyncGenerator<StreamsSnapshot, void> {
    return streamsPages(this.#transport, options);
  }

  /** Returns the event with this id; null if it is not in the log. */
  async findEvent<Payload = unknown>(
    eventId: string,
    options: CallOptions = {},
  ): Promise<CommittedEvent<Payload> | null> {
    refuseUnknown("findEvent()", options, "signal");
    const read = (request: ApiRequest) => this.#transport.request(request, options.signal);
    return (await lookUp<Payload>(read, eventId)).event;
  }

  /** @internal Appends a batch whose events are JSON. */
  async appendEncoded(batch: EncodedBatch, { signal }: CallOptions = {}): Promise<Receipt> {
    const body = batchBody(batch);
    const request: ApiRequest = { method: "POST", path: "/v1/events", body };
    const receipt = await this.#transport.request(request, signal);
    return toReceipt<Receipt>(receipt, ["status", "first_event_id", "last_event_id"]);
  }
}
