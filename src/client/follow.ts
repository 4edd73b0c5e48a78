/**
 * Follows the log, reconnecting as needed. Each record advances the position, and every connection
 * resumes there, so that each event is delivered once.
 */
import type { CommittedEvent } from "../event/types.ts";
import { CLIENT_LINE_BYTES_MAX } from "../limits.ts";
import { Deadline } from "./deadline.ts";
import { ConnectionError, type EventLogError, ProtocolError } from "./errors.ts";
import { chunksOf, readLines } from "./response_body.ts";
import { checkPosition, frontierOf, reachedAfter } from "./position.ts";
import { checkPage, eventsRequest, REPLAY_OPTIONS, type ReplayOptions } from "./replay.ts";
import { CLIENT_BACKOFF_MS_MAX, mayRepeat, type Retry } from "./retry.ts";
import { type ApiRequest, nameOf, parsed, refuseUnknown, type Transport } from "./transport.ts";
import {
  type FollowCaughtUp,
  type FollowEnd,
  type FollowEvents,
  type FollowRecord,
  toFollowRecord,
} from "./wire.ts";

/** Options for `follow()`. */
export interface FollowOptions extends ReplayOptions {
  /**
   * Returns whether to reconnect after the service ends the response. Default: yes, except after
   * `writer_poisoned` and `replay_failed`, which need an operator.
   */
  reconnect?: (end: FollowEnd) => boolean;
  /** Called before the pause that precedes each reconnect. */
  onReconnect?: (reconnect: Reconnect) => void;
  /** Called when the follow has reconnected, with the position at which it continues. */
  onReconnected?: (position: string | null) => void;
}

/** Reason for a reconnect and the delay before it. */
export type Reconnect = Retry<Interruption>;

/** Why a connection ended, although the follow continues. */
export type Interruption = FollowEnd | ConnectionError | EventLogError;

/** A followed event. */
export interface FollowEvent<Payload = unknown> {
  /** Item type. */
  type: "event";
  /** `snapshot`: committed before this connection was made. `live`: committed afterwards. */
  phase: "snapshot" | "live";
  /** The event. */
  event: CommittedEvent<Payload>;
}

/** An item yielded by `follow()`. */
export type FollowItem<Payload = unknown> = FollowEvent<Payload> | FollowCaughtUp | FollowEnd;

/** A session that lasts this long after its response is successful even without events. */
const SOUND_SESSION_MS = CLIENT_BACKOFF_MS_MAX;

export class Follower<Payload> {
  readonly #transport: Transport;
  readonly #options: FollowOptions;
  #nextAfter: string | "now" | null;
  /** When the current session becomes successful: once it has delivered events or lasted long. */
  #soundAtMs = Infinity;

  constructor(transport: Transport, options: FollowOptions) {
    refuseUnknown("follow()", options, `${REPLAY_OPTIONS} reconnect onReconnect onReconnected`);
    this.#transport = transport;
    this.#options = options;
    this.#nextAfter = options.after ?? null;
  }

  /**
   * Yields all records. The last record is an `end` that is not followed by a reconnect. Gives up
   * after `attemptsMax` consecutive short-lived connections without events.
   */
  async *records(): AsyncGenerator<FollowRecord<Payload>, void> {
    const { timing } = this.#transport;
    const { signal, onReconnect, reconnect = isReconnectedAfter } = this.#options;
    const startedAtMs = timing.nowMs();
    for (let failures = 1;; failures++) {
      const reason = yield* this.#session(failures > 1);
      signal?.throwIfAborted();
      if (timing.nowMs() >= this.#soundAtMs) failures = 1;
      const durationMs = this.#transport.pauseAfter(reason, failures, startedAtMs);
      if (reason instanceof Error) {
        if (durationMs === null) throw reason;
      } else if (durationMs === null || !reconnect(reason)) return yield reason;
      onReconnect?.({ reason, failures, pauseMs: durationMs });
      await timing.sleep(durationMs, signal);
    }
  }

  /** Reads from one connection until it ends, and returns the reason. */
  async *#session(
    isReconnect: boolean,
  ): AsyncGenerator<FollowEvents<Payload> | FollowCaughtUp, Interruption> {
    this.#soundAtMs = Infinity;
    const { signal, onReconnected } = this.#options;
    const { readTimeoutMs } = this.#transport;
    const deadline = new Deadline(signal);
    const read = (each: ApiRequest) => this.#transport.attempt(each, deadline.signal);
    let isLive = false;
    try {
      deadline.start("GET /v1/events", readTimeoutMs);
      if (this.#nextAfter === "now") this.#nextAfter = await frontierOf(read);
      const { query, ...rest } = eventsRequest(this.#options, this.#nextAfter);
      const request = { ...rest, query: { ...query, follow: "true" } };
      const name = nameOf(request);
      const response = await this.#transport.send(request, deadline.signal);
      this.#soundAtMs = this.#transport.timing.nowMs() + SOUND_SESSION_MS;
      if (this.#nextAfter !== null) await checkPosition(read, this.#nextAfter, this.#options);
      if (isReconnect) onReconnected?.(this.#nextAfter);
      for await (const line of readLines(chunksOf(name, response), CLIENT_LINE_BYTES_MAX)) {
        // The consumer may take any time, and so may the next event once the snapshot is complete.
        deadline.stop();
        const record = toFollowRecord<Payload>(parsed(request, line), this.#nextAfter);
        if (record?.type === "end") return record;
        if (record !== null) {
          await this.#moveTo(record);
          isLive ||= record.type === "caught_up";
          yield record;
        }
        if (!isLive) deadline.start(name, readTimeoutMs);
      }
    } catch (error) {
      if (mayRepeat(error)) return error;
      throw error;
    } finally {
      deadline.stop();
    }
    return new ConnectionError("the response to GET /v1/events ended prematurely");
  }

  async #moveTo(record: FollowEvents | FollowCaughtUp): Promise<void> {
    record.nextAfter = reachedAfter(record.nextAfter, this.#options);
    if (record.type === "events") await checkPage(record, this.#nextAfter, this.#options);
    if (record.type === "events" && record.events.length > 0) {
      const first = record.events.at(0)!.event_id;
      if (this.#nextAfter !== null && first <= this.#nextAfter) {
        throw new ProtocolError(`event ${first} was sent again after ${this.#nextAfter}`);
      }
      this.#soundAtMs = -Infinity;
    }
    this.#nextAfter = record.nextAfter;
  }
}

function isReconnectedAfter({ reason }: FollowEnd): boolean {
  return reason !== "writer_poisoned" && reason !== "replay_failed";
}
