/**
 * Counts events per minute over the last hour. The service provides only counts per stream, so the
 * events are replayed. Each read resumes where the previous one ended.
 */
import type { EventLogClient } from "../../mod.ts";
import { minuteOf, MINUTES, startOf, timeOf } from "../support/event_time.ts";

export interface CountedMinutes {
  /** Id of the last event counted; null if none was. */
  through: string | null;
  /** Event count by minute since the Unix epoch. */
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

  /** Counts events up to the end of the log. Concurrent calls run one after another. */
  read(): Promise<CountedMinutes> {
    const reading = this.#reading.then(() => this.#readOn());
    this.#reading = reading.catch(() => {
      // Start over. If the log was restored from an older backup, the counts are stale.
      this.#through = null;
      this.#counts.clear();
    });
    return reading;
  }

  async #readOn(): Promise<CountedMinutes> {
    const first = minuteOf(Date.now()) - MINUTES + 1;
    const since = startOf(first);
    const after = this.#through !== null && timeOf(this.#through) >= since ? this.#through : null;
    for await (const { events, nextAfter } of this.#client.replayPages({ after, since })) {
      for (const { event_id } of events) {
        const minute = minuteOf(timeOf(event_id));
        this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + 1);
      }
      this.#through = nextAfter;
    }
    for (const minute of this.#counts.keys()) if (minute < first) this.#counts.delete(minute);
    return { through: this.#through, counts: [...this.#counts] };
  }
}
