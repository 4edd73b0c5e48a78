/**
 * Publishes events, many at a time, in order and without gaps.
 *
 * Each message names the sequence that the stream must end with. So after a message that was not
 * stored none of the later ones is either; and one that arrives late, from an abandoned connection,
 * is refused or recognized by its id.
 */
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../mod.ts";
import { BridgeError, isFinal } from "./nats_failures.ts";
import { subjectOf } from "./nats_subject.ts";
import type { NatsTarget, StreamPosition } from "./nats_target.ts";
import { storedLine } from "./stored_line.ts";

/** Most unacknowledged messages. */
const IN_FLIGHT_MAX = 1024;
/** Most unacknowledged bytes of events; a single event may be larger. */
const IN_FLIGHT_BYTES_MAX = 8 * 1024 * 1024;
/** A message without an acknowledgement by then counts as lost. */
const ACK_TIMEOUT_MS = 5000;
/** Generous estimate of a message's headers, which count towards the server's limit. */
const HEADER_BYTES_MAX = 512;

/** The part of a target that publishing needs. */
export type PublishTarget = Pick<NatsTarget, "client" | "connection" | "stream">;

export class NatsPipeline {
  readonly #target: PublishTarget;
  readonly #onFailure: (error: unknown) => void;
  /** The last message that is known to be stored. */
  #stored: StreamPosition;
  /** Sequence of the last message sent. */
  #sentSequence: number;
  #inFlight = 0;
  #inFlightBytes = 0;
  #answered = Promise.withResolvers<void>();

  /** @param onFailure called when a message was not stored; later ones are not either. */
  constructor(target: PublishTarget, start: StreamPosition, onFailure: (error: unknown) => void) {
    this.#target = target;
    this.#onFailure = onFailure;
    this.#stored = start;
    this.#sentSequence = start.sequence;
  }

  /** The end of the stream, as far as acknowledged. */
  get stored(): StreamPosition {
    return this.#stored;
  }

  /**
   * Sends an event once there is capacity. `stored` and `onFailure` report its outcome.
   * @throws {BridgeError} it exceeds the server's limit.
   */
  async publish(event: CommittedEvent): Promise<void> {
    const data = Buffer.from(storedLine(event));
    while (!this.#hasRoom(data.length)) await this.#answered.promise;
    this.#send(event, data);
  }

  /** Waits until every message is acknowledged or abandoned. */
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
    // A duplicate has the expected sequence unless somebody else publishes too.
    if (sequence !== expected) {
      this.#onFailure(
        new Error(`event ${event.event_id} became message ${sequence}, not ${expected}`),
      );
    } else if (sequence > this.#stored.sequence) {
      this.#stored = { eventId: event.event_id, sequence };
    }
  }
}

function tooLarge(event: CommittedEvent, data: Uint8Array, limitBytes: number): BridgeError {
  const { event_id, source, stream } = event;
  return new BridgeError(
    `event ${event_id} of ${source}/${stream} has ${data.length} bytes, but the server accepts ` +
      `messages of ${limitBytes} with ${HEADER_BYTES_MAX} for headers: raise its max_payload; ` +
      "after a restart the bridge resumes with this event",
  );
}

function refused({ event_id, source, stream }: CommittedEvent, error: Error): BridgeError {
  return new BridgeError(`NATS refused event ${event_id} of ${source}/${stream}: ${error.message}`);
}
