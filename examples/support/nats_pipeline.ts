/**
 * Publishes events, many at a time, so that they lie in the stream in order and without a gap.
 *
 * Each message says which sequence the stream must end with for it to be stored. So after one that
 * was not stored none of those behind it is, whatever became of it; and one that arrives late, from
 * a connection long given up, is refused or recognized by its id.
 */
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../mod.ts";
import { BridgeError, isFinal } from "./nats_failures.ts";
import { subjectOf } from "./nats_subject.ts";
import type { NatsTarget, StreamPosition } from "./nats_target.ts";
import { storedLine } from "./stored_line.ts";

/** Messages without an answer yet, at the most. */
const IN_FLIGHT_MAX = 1024;
/** Bytes of events without an answer yet, at the most; one event may be larger. */
const IN_FLIGHT_BYTES_MAX = 8 * 1024 * 1024;
/** A message that has no answer by then is taken for lost. */
const ACK_TIMEOUT_MS = 5000;
/** What the headers of a message take of the server's limit, generously. */
const HEADER_BYTES_MAX = 512;

/** What of a target it takes to publish. */
export type PublishTarget = Pick<NatsTarget, "client" | "connection" | "stream">;

export class NatsPipeline {
  readonly #target: PublishTarget;
  readonly #onFailure: (error: unknown) => void;
  /** The last one stored for certain. */
  #stored: StreamPosition;
  /** Sequence of the last one sent. */
  #sentSequence: number;
  #inFlight = 0;
  #inFlightBytes = 0;
  #answered = Promise.withResolvers<void>();

  /** @param onFailure Called when a message was not stored. Those behind it are not either. */
  constructor(target: PublishTarget, start: StreamPosition, onFailure: (error: unknown) => void) {
    this.#target = target;
    this.#onFailure = onFailure;
    this.#stored = start;
    this.#sentSequence = start.sequence;
  }

  /** Where the stream ends, as far as it has answered. */
  get stored(): StreamPosition {
    return this.#stored;
  }

  /**
   * Sends an event as soon as there is room. Its outcome is told by `stored` and `onFailure`.
   * @throws {BridgeError} it is larger than the server takes.
   */
  async publish(event: CommittedEvent): Promise<void> {
    const data = Buffer.from(storedLine(event));
    while (!this.#hasRoom(data.length)) await this.#answered.promise;
    this.#send(event, data);
  }

  /** Waits until every message has its answer, or is given up. */
  async drain(): Promise<void> {
    while (this.#inFlight > 0) await this.#answered.promise;
  }

  #hasRoom(bytes: number): boolean {
    if (this.#inFlight === 0) return true;
    return this.#inFlight < IN_FLIGHT_MAX && this.#inFlightBytes + bytes <= IN_FLIGHT_BYTES_MAX;
  }

  #send(event: CommittedEvent, data: Uint8Array): void {
    const { client, connection, stream } = this.#target;
    const limitBytes = connection.info?.max_payload ?? Infinity;
    if (data.length + HEADER_BYTES_MAX > limitBytes) throw tooLarge(event, data, limitBytes);
    const lastSequence = this.#sentSequence++;
    this.#inFlight++;
    this.#inFlightBytes += data.length;
    client.publish(subjectOf(stream, event), data, {
      msgID: event.event_id,
      expect: { streamName: stream, lastSequence },
      timeout: ACK_TIMEOUT_MS,
    }).then(
      ({ seq }) => this.#take(event, seq, lastSequence + 1),
      (error) => this.#onFailure(isFinal(error) ? refused(event, error) : error),
    ).finally(() => {
      this.#inFlight--;
      this.#inFlightBytes -= data.length;
      this.#answered.resolve();
      this.#answered = Promise.withResolvers();
    });
  }

  #take(event: CommittedEvent, sequence: number, expected: number): void {
    // A duplicate is told where it is: there, unless somebody else publishes too.
    if (sequence !== expected) {
      this.#onFailure(new Error(`event ${event.event_id} is message ${sequence}, not ${expected}`));
    } else if (sequence > this.#stored.sequence) {
      this.#stored = { eventId: event.event_id, sequence };
    }
  }
}

function tooLarge(event: CommittedEvent, data: Uint8Array, limitBytes: number): BridgeError {
  const { event_id, source, stream } = event;
  return new BridgeError(
    `event ${event_id} of ${source}/${stream} has ${data.length} bytes, and the server takes ` +
      `messages of ${limitBytes} with ${HEADER_BYTES_MAX} for headers: raise its max_payload; ` +
      "the bridge goes on from this event when it is started again",
  );
}

function refused({ event_id, source, stream }: CommittedEvent, error: Error): BridgeError {
  return new BridgeError(`NATS refused event ${event_id} of ${source}/${stream}: ${error.message}`);
}
