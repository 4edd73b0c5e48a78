/** An `EventLog` of which a test says what it does; whatever it leaves out fails. */
import type { EventLog, Replay } from "../../src/service/event_log.ts";

export function stubLog(members: Partial<EventLog>): EventLog {
  const unexpected = (): never => {
    throw new Error("a call the test did not expect");
  };
  return {
    append: unexpected,
    retire: unexpected,
    replay: unexpected,
    follow: unexpected,
    streams: unexpected,
    ...members,
  };
}

/** A log of which a test changes some members. */
export function alteredLog(log: EventLog, members: Partial<EventLog>): EventLog {
  return new Proxy(log, {
    get: (_log, name) => Reflect.get(members, name) ?? Reflect.get(log, name).bind(log),
  });
}

/** A replay that hands out these pieces, or throws where one is an error. */
export function stubReplay(pieces: Iterable<string | Error>): Replay {
  const iterator = pieces[Symbol.iterator]();
  return {
    snapshotThroughEventId: "snapshot",
    lastEventId: "last",
    nextAfter: "next",
    // deno-lint-ignore require-await -- an error rejects
    async next() {
      const { done, value } = iterator.next();
      if (done) return null;
      if (value instanceof Error) throw value;
      return new TextEncoder().encode(value);
    },
  };
}
