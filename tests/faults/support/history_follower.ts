/** A follower of one process in a long history. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { FOLLOW_ALL } from "../../support/follow_records.ts";

/** Maximum number of polls before the follower must have caught up. */
const TURNS_MAX = 1000;
const EVENTS = /^\{"type":"events","phase":"\w+","events":\[(.+)\],"last_event_id":"[^"]+",/;

export class HistoryFollower {
  /** Offset of the follower's first event in the known replay of the log. */
  readonly #start: number;
  /** The received events, in replay format. */
  #text = "";
  /** Why the follow ended; null while it is open. */
  reason: string | null = null;

  /**
   * @param after the last event before the follower's first record, or undefined for none.
   * @param start offset of the follower's next event in the replay of the whole log.
   */
  constructor(service: EventLogService, after: string | undefined, start: number) {
    this.#start = start;
    void this.#collect(service, after);
  }

  /**
   * Waits until the follower has reached the end of the known log.
   * @param mayHaveFailed returns whether one of the follower's reads may have failed.
   */
  async catchUp(text: string, mayHaveFailed: () => boolean): Promise<void> {
    for (let turns = 0; this.#start + this.#text.length < text.length; turns++) {
      if (mayHaveFailed() && this.reason === "replay_failed") break;
      assert.ok(turns < TURNS_MAX && this.reason === null, "the follower gets every event");
      await setImmediate();
    }
    this.check(text);
  }

  /** Waits until the follow ends, either for the expected reason or because of a failed read. */
  async ended(expected = "writer_poisoned"): Promise<void> {
    for (let turns = 0; this.reason === null; turns++) {
      assert.ok(turns < TURNS_MAX, `the follow ends with ${expected}`);
      await setImmediate();
    }
    assert.ok([expected, "replay_failed"].includes(this.reason), this.reason);
  }

  /** Checks that the follower received the events after its position, each once and in order. */
  check(text: string): void {
    assert.ok(
      text.startsWith(this.#text, this.#start),
      "the follower sees the same events as a replay",
    );
  }

  async #collect(service: EventLogService, after: string | undefined): Promise<void> {
    const follow = service.follow({ ...FOLLOW_ALL, after });
    for (let bytes = await follow.next(); bytes !== null; bytes = await follow.next()) {
      const line = Buffer.from(bytes).toString();
      const events = EVENTS.exec(line)?.[1];
      if (events !== undefined) this.#text += (this.#text === "" ? "" : ",") + events;
      if (line.startsWith('{"type":"end"')) this.reason = JSON.parse(line).reason;
    }
  }
}
