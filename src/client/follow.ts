/**
 * Following the log over as many connections as it takes. The position moves with each record that
 * arrives, and every connection resumes there: no event is left out and none comes twice. The
 * service is read no faster than records are taken.
 */
import type { CommittedEvent } from "../event/types.ts";
import { CLIENT_LINE_BYTES_MAX } from "../limits.ts";
import { ConnectionError, type EventLogError, ProtocolError } from "./errors.ts";
import { readLines } from "./lines.ts";
import { eventsRequest, type ReplayOptions } from "./replay.ts";
import { CLIENT_BACKOFF_MS_MAX, mayRepeat, pauseMs } from "./retry.ts";
import type { Timing } from "./timing.ts";
import { nameOf, type Send } from "./transport.ts";
import {
  type FollowCaughtUp,
  type FollowEnd,
  type FollowEvents,
  type FollowRecord,
  toFollowLine,
} from "./wire.ts";

/** What to follow. */
export interface FollowOptions extends ReplayOptions {
  /**
   * Whether to connect again after the service ended the response. If absent: yes, except after
   * `writer_poisoned` and `replay_failed`, which need an operator first.
   */
  reconnect?: (end: FollowEnd) => boolean;
  /** Hears of every new connection before the pause that precedes it. */
  onReconnect?: (reconnect: Reconnect) => void;
}

/** Why and when the next connection is made. */
export interface Reconnect {
  /** What the service said, or how the connection failed. */
  reason: Interruption;
  /** Failures in a row, this one included. */
  failures: number;
  /** Milliseconds until then. */
  pauseMs: number;
}

/** What can end a connection without ending the following. */
export type Interruption = FollowEnd | ConnectionError | EventLogError;

/** One event as it is followed. */
export interface FollowEvent {
  /** Tells it from the other items. */
  type: "event";
  /** `snapshot`: committed before this connection was made. `live`: since. */
  phase: "snapshot" | "live";
  /** The event. */
  event: CommittedEvent;
}

/** What a follow delivers, event by event. */
export type FollowItem = FollowEvent | FollowCaughtUp | FollowEnd;

/** How to reach the service, and how often to try. */
export interface FollowMeans {
  send: Send;
  timing: Timing;
  /** Connections in a row that bring nothing and do not last. */
  attemptsMax: number;
}

/** A session that lasts as long is no failed attempt, even if nothing was committed meanwhile. */
const SOUND_SESSION_MS = CLIENT_BACKOFF_MS_MAX;

export class Follower {
  readonly #means: FollowMeans;
  readonly #options: FollowOptions;
  #nextAfter: string | null;
  /** When the service began to answer the present connection; null before. */
  #answeredAtMs: number | null = null;
  #hasDelivered = false;

  constructor(means: FollowMeans, options: FollowOptions) {
    this.#means = means;
    this.#options = options;
    this.#nextAfter = options.after ?? null;
  }

  /**
   * All records, the last one being the `end` that is not reconnected after.
   * @throws {ConnectionError} the service was not reached in the last attempt.
   * @throws {EventLogError} it refuses; in the case of 429, the last attempt too.
   * @throws {ProtocolError} it sends what cannot be.
   */
  async *records(): AsyncGenerator<FollowRecord, void> {
    const { timing, attemptsMax } = this.#means;
    const { signal, onReconnect } = this.#options;
    for (let failures = 1;; failures++) {
      const reason = yield* this.#session();
      signal?.throwIfAborted();
      if (this.#wasSound()) failures = 1;
      if (failures >= attemptsMax || !this.#mayReconnect(reason)) {
        if (reason instanceof Error) throw reason;
        yield reason;
        return;
      }
      const durationMs = pauseMs(failures, reason, timing.random());
      onReconnect?.({ reason, failures, pauseMs: durationMs });
      await timing.sleep(durationMs, signal);
    }
  }

  /** One connection; returns what ended it. */
  async *#session(): AsyncGenerator<FollowEvents | FollowCaughtUp, Interruption> {
    this.#answeredAtMs = null;
    this.#hasDelivered = false;
    const { signal } = this.#options;
    const request = eventsRequest(this.#options, this.#nextAfter);
    request.query = { ...request.query, follow: "true" };
    const name = nameOf(request);
    try {
      const { body } = await this.#means.send(request, signal);
      if (body === null) throw new ProtocolError(`answer to ${name} has no body`);
      this.#answeredAtMs = this.#means.timing.nowMs();
      for await (const line of readLines(name, body, CLIENT_LINE_BYTES_MAX)) {
        const record = toFollowLine(line);
        if (record === null) continue;
        if (record.type === "end") return { ...record, nextAfter: this.#nextAfter };
        this.#moveTo(record);
        yield record;
      }
    } catch (error) {
      if (mayRepeat(error)) return error;
      throw error;
    }
    return new ConnectionError(`${name} ended in the middle of the answer`);
  }

  #moveTo(record: FollowEvents | FollowCaughtUp): void {
    if (record.type === "events" && record.events.length > 0) {
      const first = record.events[0]!.event_id;
      if (this.#nextAfter !== null && first <= this.#nextAfter) {
        throw new ProtocolError(`event ${first} came again, after ${this.#nextAfter}`);
      }
      this.#hasDelivered = true;
    }
    this.#nextAfter = record.nextAfter;
  }

  #wasSound(): boolean {
    const { timing } = this.#means;
    return this.#hasDelivered || this.#answeredAtMs !== null &&
        timing.nowMs() - this.#answeredAtMs >= SOUND_SESSION_MS;
  }

  #mayReconnect(reason: Interruption): boolean {
    if (reason instanceof Error) return true;
    const { reconnect = isReconnectedAfter } = this.#options;
    return reconnect(reason);
  }
}

function isReconnectedAfter({ reason }: FollowEnd): boolean {
  return reason !== "writer_poisoned" && reason !== "replay_failed";
}

/** The same, event by event. */
export async function* followItems(
  records: AsyncIterable<FollowRecord>,
): AsyncGenerator<FollowItem, void> {
  for await (const record of records) {
    if (record.type !== "events") {
      yield record;
      continue;
    }
    const { phase } = record;
    for (const event of record.events) yield { type: "event", phase, event };
  }
}
