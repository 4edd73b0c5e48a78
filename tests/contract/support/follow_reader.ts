/** A follow response as a client reads it: line by line, over one connection. */
import assert from "node:assert/strict";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { CommittedEvent } from "../../../src/event/types.ts";
import type { FollowRecord } from "../../support/follow_records.ts";

export class FollowReader {
  readonly #incoming: IncomingMessage;
  readonly #lines: AsyncIterator<string>;

  private constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    this.#lines = linesOf(incoming);
  }

  /** Opens a follow, and resolves when its headers arrive. `query` is appended to `follow=true`. */
  static open(socketPath: string, query = ""): Promise<FollowReader> {
    const path = `/v1/events?follow=true${query}`;
    return new Promise((resolve, reject) => {
      const outgoing = request({ socketPath, agent: false, path });
      outgoing.on("error", reject);
      outgoing.on("response", (incoming) => {
        assert.equal(incoming.statusCode, 200);
        incoming.on("error", () => {}); // Reading a line reports the error.
        resolve(new FollowReader(incoming));
      });
      outgoing.end();
    });
  }

  get headers(): IncomingHttpHeaders {
    return this.#incoming.headers;
  }

  /** The next line; null at the end of the response. */
  async line(): Promise<string | null> {
    const { done, value } = await this.#lines.next();
    return done ? null : value;
  }

  /** The next record, which must exist. */
  async next(): Promise<FollowRecord> {
    const line = await this.line();
    assert.ok(line !== null, "the response continues");
    return JSON.parse(line);
  }

  async nextOf<Type extends FollowRecord["type"]>(
    type: Type,
  ): Promise<Extract<FollowRecord, { type: Type }>> {
    const record = await this.next();
    assert.equal(record.type, type, JSON.stringify(record));
    return record as Extract<FollowRecord, { type: Type }>;
  }

  /** Reads up to `caught_up` and returns the events before it. */
  async catchUp(): Promise<CommittedEvent[]> {
    const events: CommittedEvent[] = [];
    for (;;) {
      const record = await this.next();
      if (record.type === "caught_up") return events;
      assert.ok(record.type === "events" && record.phase === "snapshot", JSON.stringify(record));
      events.push(...record.events);
    }
  }

  /** Reads live records until they contain `count` events. */
  async takeLive(count: number): Promise<CommittedEvent[]> {
    const events: CommittedEvent[] = [];
    while (events.length < count) {
      const record = await this.nextOf("events");
      assert.equal(record.phase, "live");
      events.push(...record.events);
    }
    return events;
  }

  /** Disconnects. */
  close(): void {
    this.#incoming.destroy();
  }
}

/** @throws if the response is aborted or ends within a line. */
async function* linesOf(incoming: IncomingMessage): AsyncGenerator<string, undefined> {
  let text = "";
  for await (const piece of incoming.setEncoding("utf8")) {
    text += piece;
    const lines = text.split("\n");
    text = lines.pop()!;
    yield* lines;
  }
  assert.equal(text, "", "a line is complete");
}
