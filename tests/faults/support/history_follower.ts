/** A follower of one process of a long history. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { EventLogService } from "../../../src/service/event_log_service.ts";
import { FOLLOW_ALL } from "../../support/follow_records.ts";
import { turn } from "./turn.ts";

/** How often a follower is looked at until it must have caught up. */
const TURNS_MAX = 1000;
const EVENTS = /^\{"type":"events","phase":"\w+","events":\[(.+)\],"last_event_id":"[^"]+",/;

export class HistoryFollower {
  /** What is known of the log before its place. */
  readonly #before: string;
  /** Its events, as the records give them. */
  #text = "";
  #isOver = false;

  /**
   * @param after follows from behind this event; from the start when undefined.
   * @param before the events up to that, as replay gives them.
   */
  constructor(service: EventLogService, after: string | undefined, before: string) {
    this.#before = before;
    void this.#collect(service, after);
  }

  /** Lets it take what there is, to the end of what is known of the log. */
  async catchUp(text: string): Promise<void> {
    for (let turns = 0; this.#seen().length < text.length; turns++) {
      assert.ok(turns < TURNS_MAX && !this.#isOver, "a follower is given every event");
      await turn();
    }
    this.check(text);
  }

  /** What it was given are the events behind its place, each once and in order. */
  check(text: string): void {
    assert.ok(text.startsWith(this.#seen()), "a follower sees what replay shows");
  }

  #seen(): string {
    const comma = this.#before !== "" && this.#text !== "" ? "," : "";
    return this.#before + comma + this.#text;
  }

  async #collect(service: EventLogService, after: string | undefined): Promise<void> {
    const follow = service.follow({ ...FOLLOW_ALL, after });
    for (let bytes = await follow.next(); bytes !== null; bytes = await follow.next()) {
      const events = EVENTS.exec(Buffer.from(bytes).toString())?.[1];
      if (events !== undefined) this.#text += (this.#text === "" ? "" : ",") + events;
    }
    this.#isOver = true;
  }
}
