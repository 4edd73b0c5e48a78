/** An `EventLog` of which a test says what it does; whatever it leaves out fails. */
import { freeMemory } from "../../src/free_memory.ts";
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

/**
 * A replay that hands out these pieces, or throws where one is an error. Each is a small part of
 * its memory, which is gone when the piece was given back.
 */
export function stubReplay(pieces: Iterable<string | Error>): Replay {
  const iterator = pieces[Symbol.iterator]();
  const handedOut = new Set<ArrayBufferLike>();
  return {
    snapshotThroughEventId: "snapshot",
    lastEventId: "last",
    nextAfter: "next",
    release({ buffer }) {
      if (handedOut.delete(buffer)) freeMemory(buffer);
    },
    // deno-lint-ignore require-await -- an error rejects
    async next() {
      const { done, value } = iterator.next();
      if (done) return null;
      if (value instanceof Error) throw value;
      const bytes = new TextEncoder().encode(value);
      const memory = new Uint8Array(3 * bytes.length);
      memory.set(bytes);
      handedOut.add(memory.buffer);
      return memory.subarray(0, bytes.length);
    },
  };
}
