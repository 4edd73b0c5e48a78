/** An `EventLog` whose properties a test defines. All other properties throw. */
import { Buffer } from "node:buffer";
import type { EventLog, Replay } from "../../src/service/event_log.ts";

export function stubLog(members: Partial<EventLog>): EventLog {
  const unexpected = (): never => {
    throw new Error("unexpected call");
  };
  return {
    ingest: unexpected,
    retire: unexpected,
    replay: unexpected,
    follow: unexpected,
    streams: unexpected,
    isPoisoned: false,
    ...members,
  };
}

/** A log in which some properties are replaced. */
export function alteredLog(log: EventLog, members: Partial<EventLog>): EventLog {
  return new Proxy(log, {
    get(_log, name) {
      const member = Reflect.get(members, name) ?? Reflect.get(log, name);
      return typeof member === "function" && !(name in members) ? member.bind(log) : member;
    },
  });
}

/** A replay that yields the strings in `pieces` and throws the errors. */
export function stubReplay(pieces: Iterable<string | Error>): Replay {
  const iterator = pieces[Symbol.iterator]();
  return {
    snapshotThroughEventId: "snapshot",
    lastEventId: "last",
    nextAfter: "next",
    close() {},
    // deno-lint-ignore require-await -- errors must reject
    async next() {
      const { done, value } = iterator.next();
      if (done) return null;
      if (value instanceof Error) throw value;
      return Buffer.from(value);
    },
  };
}
