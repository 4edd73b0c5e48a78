/**
 * The client of the event log service: one method for each thing the service does. Every request is
 * safe to repeat, so a lost connection and a 429 are answered by asking again, within bounds; any
 * other error reaches the caller at once.
 */
import type { CommittedEvent, Receipt, RetirementReceipt } from "../event/types.ts";
import { type Batch, batchBody } from "./batch_body.ts";
import { ConnectionError } from "./errors.ts";
import { Follower, type FollowItem, followItems, type FollowOptions } from "./follow.ts";
import { eventsOf, type Get, type ReplayOptions, replayPages } from "./replay.ts";
import { withRetries } from "./retry.ts";
import { listStreams, type StreamsOptions, type StreamsSnapshot } from "./streams.ts";
import { withTimeLimit } from "./time_limit.ts";
import { SYSTEM_TIMING, type Timing } from "./timing.ts";
import { type ApiRequest, createSend, nameOf, type Send, sendForJson } from "./transport.ts";
import type { Fetch } from "./unix_fetch.ts";
import { type FollowRecord, type ReplayPage, toReceipt } from "./wire.ts";

/** How long an append or a retirement may take, all attempts and pauses together. */
const CLIENT_WRITE_TIMEOUT_MS = 60_000;

/** Attempts at one request; with the pauses below, a service may be away for more than a minute. */
export const CLIENT_ATTEMPTS_MAX: number = 20;

/** Options of an {@linkcode EventLogClient}. */
export interface EventLogClientOptions {
  /** Bearer token, where the service asks for one. */
  token?: string;
  /** Attempts at one request, the first included; 20 if absent, 1 never asks again. */
  attemptsMax?: number;
  /** How long an append or retirement may take, all attempts together; 60,000 if absent. */
  writeTimeoutMs?: number;
  /** Clock, pauses and chance, for tests. */
  timing?: Timing;
}

/** Options of a single call. */
export interface CallOptions {
  /** Gives up: the call throws the signal's reason. */
  signal?: AbortSignal;
}

/**
 * A client of one service.
 *
 * All methods throw {@linkcode EventLogError} when the service refuses, {@linkcode ConnectionError}
 * when it gave no answer in any attempt, {@linkcode ProtocolError} when its answer makes no sense,
 * and the signal's reason when that is aborted.
 *
 * @example Append, and read what is there
 * ```ts
 * import { EventLogClient, unixFetch } from "@ground/service";
 *
 * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
 * await client.append({
 *   source: "crm",
 *   batchId: "2026-01-31/1",
 *   events: [{ stream: "contacts", record_key: "42", kind: "upserted", payload: { name: "Ada" } }],
 * });
 * for await (const event of client.replay({ source: "crm" })) console.log(event.record_key);
 * ```
 */
export class EventLogClient {
  readonly #send: Send;
  readonly #timing: Timing;
  readonly #attemptsMax: number;
  readonly #writeTimeoutMs: number;

  /**
   * Makes a client; it connects when it is first asked for something.
   * @param fetch The way to the service: `unixFetch(socketPath)`.
   * @throws {TypeError} the token cannot stand in a header.
   */
  constructor(fetch: Fetch, options: EventLogClientOptions = {}) {
    this.#send = createSend(fetch, options.token);
    this.#timing = options.timing ?? SYSTEM_TIMING;
    this.#attemptsMax = options.attemptsMax ?? CLIENT_ATTEMPTS_MAX;
    this.#writeTimeoutMs = options.writeTimeoutMs ?? CLIENT_WRITE_TIMEOUT_MS;
  }

  /**
   * Appends a batch; it is durable as a whole when this returns. The same batch appended again,
   * here after a lost connection or by the caller later, is answered as `duplicate` with the first
   * receipt.
   *
   * After a `ConnectionError` the batch may or may not be committed: append it again,
   * unchanged.
   *
   * @throws {TypeError} the batch cannot be said in JSON.
   */
  async append(batch: Batch, options: CallOptions = {}): Promise<Receipt> {
    const body = batchBody(batch);
    const answer = await this.#write({ method: "POST", path: "/v1/events", body }, options.signal);
    return toReceipt<Receipt>(answer, ["status", "first_event_id", "last_event_id"]);
  }

  /**
   * Retires a source: it takes no more batches. Retiring it again is answered as `already_retired`
   * with the same values, also when the first answer was lost on the way.
   */
  async retire(source: string, options: CallOptions = {}): Promise<RetirementReceipt> {
    const body = new TextEncoder().encode(JSON.stringify({ v: 1, source }));
    const request: ApiRequest = { method: "POST", path: "/v1/sources/retire", body };
    const answer = await this.#write(request, options.signal);
    return toReceipt<RetirementReceipt>(answer, [
      "status",
      "final_frontier",
      "retirement_event_id",
    ]);
  }

  /**
   * The events of the log as it is when the first page is read, in order. To resume where this
   * ended, read {@linkcode EventLogClient.replayPages} and keep the last `nextAfter`.
   */
  replay(options: ReplayOptions = {}): AsyncGenerator<CommittedEvent, void> {
    return eventsOf(this.replayPages(options));
  }

  /**
   * The same, page by page. All pages describe one moment, the one when the first is read, so this
   * ends however fast the log grows.
   *
   * @example A consumer that resumes where it stopped
   * ```ts
   * import { EventLogClient, unixFetch } from "@ground/service";
   *
   * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
   * let position: string | null = null;
   * for await (const { events, nextAfter } of client.replayPages({ after: position })) {
   *   console.log(`${events.length} events`);
   *   position = nextAfter; // Persist it together with what the events led to.
   * }
   * ```
   */
  replayPages(options: ReplayOptions = {}): AsyncGenerator<ReplayPage, void> {
    return replayPages(this.#get, options);
  }

  /**
   * The events of the log, and those that are committed from then on, one by one; `caught_up` in
   * between. Lost connections are made again, from after the last event that was delivered, with a
   * new `snapshot` phase for what was missed. When the service ends the following for good, the
   * last item is `end` and says why.
   *
   * @example
   * ```ts
   * import { EventLogClient, unixFetch } from "@ground/service";
   *
   * const client = new EventLogClient(unixFetch("demo/data/ground.sock"));
   * for await (const item of client.follow({ stream: "contacts" })) {
   *   if (item.type === "event") console.log(item.phase, item.event.record_key);
   *   if (item.type === "caught_up") break; // Or wait for more.
   * }
   * ```
   */
  follow(options: FollowOptions = {}): AsyncGenerator<FollowItem, void> {
    return followItems(this.followRecords(options));
  }

  /**
   * The same, record by record, each with the `nextAfter` to persist: for consumers that write what
   * several events led to in one transaction.
   */
  followRecords(options: FollowOptions = {}): AsyncGenerator<FollowRecord, void> {
    const means = { send: this.#send, timing: this.#timing, attemptsMax: this.#attemptsMax };
    return new Follower(means, options).records();
  }

  /** All streams with their latest event and their number of events, at one moment. */
  streams(options: StreamsOptions = {}): Promise<StreamsSnapshot> {
    return listStreams(this.#get, options);
  }

  /** Reads have no time limit: a rare match may lie at the end of a long log. */
  readonly #get: Get = (request, signal) => this.#ask(request, signal);

  async #write(request: ApiRequest, signal: AbortSignal | undefined): Promise<unknown> {
    const limitMs = this.#writeTimeoutMs;
    const timeUp = () => new ConnectionError(`${nameOf(request)} got no answer in ${limitMs} ms`);
    return await withTimeLimit(
      (limited) => this.#ask(request, limited, limitMs),
      { limitMs, signal, timeUp },
    );
  }

  #ask(request: ApiRequest, signal: AbortSignal | undefined, timeoutMs?: number): Promise<unknown> {
    return withRetries(() => sendForJson(this.#send, request, signal), {
      timing: this.#timing,
      attemptsMax: this.#attemptsMax,
      signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  }
}
