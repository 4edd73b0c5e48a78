/** A follower of one process of a long history. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { FOLLOW_ALL } from "../../support/follow_records.ts";

/** How often a follower is looked at until it must have caught up. */
const TURNS_MAX = 1000;
const EVENTS = /^\{"type":"events","phase":"\w+","events":\[(.+)\],"last_event_id":"[^"]+",/;

export class HistoryFollower {
  /** Where its events begin in what is known of the log. */
  readonly #start: number;
  /** Its events, as the records give them. */
  #text = "";
  /** Why it ended; null while it goes on. */
  reason: string | null = null;

  /**
   * @param after follows from behind this event; from the start when undefined.
   * @param start where the next one begins in the text of all events, as replay gives it.
   */
  constructor(service: EventLogService, after: string | undefined, start: number) {
    this.#start = start;
    void this.#collect(service, after);
  }

  /**
   * Lets it take what there is, to the end of what is known of the log.
   * @param mayHaveFailed whether a read of it can have failed, which it may not know yet.
   */
  async catchUp(text: string, mayHaveFailed: boolean): Promise<void> {
    for (let turns = 0; this.#start + this.#text.length < text.length; turns++) {
      if (mayHaveFailed && this.reason === "replay_failed") break;
      assert.ok(turns < TURNS_MAX && this.reason === null, "a follower is given every event");
      await setImmediate();
    }
    this.check(text);
  }

  /** It is told that the writer has stopped, or why else it ended, unless it could not read. */
  async ended(expected = "writer_poisoned"): Promise<void> {
    for (let turns = 0; this.reason === null; turns++) {
      assert.ok(turns < TURNS_MAX, `a follower is told: ${expected}`);
      await setImmediate();
    }
    assert.ok([expected, "replay_failed"].includes(this.reason), this.reason);
  }

  /** What it was given are the events behind its place, each once and in order. */
  check(text: string): void {
    assert.ok(text.startsWith(this.#text, this.#start), "a follower sees what replay shows");
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
