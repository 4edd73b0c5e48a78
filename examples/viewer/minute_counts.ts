/**
 * Events per minute of the last hour. The service counts by stream only, so the events are read,
 * once: a later request reads on from there.
 */
import type { EventLogClient } from "../../mod.ts";
import { minuteOf, MINUTES, positionAt, startOf, timeOf } from "../support/event_time.ts";

export interface CountedMinutes {
  /** Events up to this one are counted; null for none. */
  through: string | null;
  /** Count by minute since 1970. */
  counts: [minute: number, count: number][];
}

export class MinuteCounts {
  readonly #client: EventLogClient;
  #through: string | null = null;
  #counts = new Map<number, number>();
  #reading: Promise<unknown> = Promise.resolve();

  constructor(client: EventLogClient) {
    this.#client = client;
  }

  /** Counts to the end of the log; requests at the same time wait for each other. */
  read(): Promise<CountedMinutes> {
    const reading = this.#reading.then(() => this.#readOn());
    this.#reading = reading.catch(() => {
      // As after a restore from an older backup, what was counted may be of another log.
      this.#through = null;
      this.#counts.clear();
    });
    return reading;
  }

  async #readOn(): Promise<CountedMinutes> {
    const first = minuteOf(Date.now()) - MINUTES + 1;
    const { value: page } = await this.#client.replayPages({ limit: 1 }).next();
    const frontier = page?.snapshotThroughEventId ?? null;
    const hourAgo = positionAt(startOf(first));
    const from = this.#through !== null && this.#through > hourAgo ? this.#through : hourAgo;
    // A position beyond the log would be a fault.
    if (frontier !== null && from < frontier) {
      for await (const { events, nextAfter } of this.#client.replayPages({ after: from })) {
        for (const { event_id } of events) {
          const minute = minuteOf(timeOf(event_id));
          this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + 1);
        }
        this.#through = nextAfter;
      }
    }
    for (const minute of this.#counts.keys()) if (minute < first) this.#counts.delete(minute);
    return { through: this.#through, counts: [...this.#counts] };
  }
}
