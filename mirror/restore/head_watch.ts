/** Checks that a log reaches an expected chain head, such as one that `seal` printed. */
import { operationalError } from "../../src/commands/exit.ts";
import { GENESIS_HEAD_HEX, nextHead } from "../../src/event/chain.ts";
import { StoredEvent } from "../../src/log/line/stored_event.ts";
import type { Log } from "../../src/log/log.ts";
import { walkEvents } from "../../src/log/read/snapshot.ts";

export class HeadWatch {
  readonly #wanted: string | undefined;
  #isSeen: boolean;

  private constructor(wanted: string | undefined, isSeen: boolean) {
    this.#wanted = wanted;
    this.#isSeen = isSeen;
  }

  /** Checks the events already in a log. @param wanted 64 lowercase hex digits, or undefined. */
  static async over(log: Log, wanted: string | undefined): Promise<HeadWatch> {
    return new HeadWatch(wanted, wanted === undefined || await passesHead(log, wanted));
  }

  see(head: string): void {
    if (!this.#isSeen) this.#isSeen = head === this.#wanted;
  }

  /** @throws {CommandError} if the wanted head was not reached. */
  conclude({ head, snapshot }: Log): void {
    if (this.#isSeen) return;
    throw operationalError(
      `chain head ${this.#wanted} was not reached: the log ends with event ` +
        `${snapshot.frontier} and head ${head}; the stream is incomplete or from a different log`,
    );
  }
}

/** Whether this is the chain head after any event in a log. */
async function passesHead(log: Log, wanted: string): Promise<boolean> {
  const known = [GENESIS_HEAD_HEX, log.head];
  if (known.includes(wanted)) return true;
  let head = GENESIS_HEAD_HEX;
  const event = new StoredEvent();
  let isSeen = false;
  for (const file of log.snapshot.files) {
    await walkEvents(file, (chunk, start) => {
      if (event.takeLine(chunk, start) === 0) {
        throw operationalError("the log contains a malformed event");
      }
      head = nextHead(head, event.eventHash);
      isSeen = head === wanted;
      return !isSeen;
    });
    if (isSeen) return true;
  }
  return false;
}
