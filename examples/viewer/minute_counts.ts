/**
 * Counts events per minute over the last hour. The service provides only counts per stream, so the
 * events are replayed. Each read resumes where the previous one ended.
 */
import type { EventLogClient, ReplayOptions } from "../../mod.ts";
import { minuteOf, MINUTES, startOf, timeOf } from "../support/event_time.ts";

export interface CountedMinutes {
  /** Id of the last event counted; null if none was. */
  through: string | null;
  /** Event count by minute since the Unix epoch. */
  counts: [minute: number, count: number][];
}

/** Filters whose counts are kept. The oldest is dropped, and counted again if it returns. */
const FILTERS_MAX = 8;

/** Counts for each filter that pages use. */
export class FilteredCounts {
  readonly #client: EventLogClient;
  readonly #counts = new Map<string, MinuteCounts>();

  constructor(client: EventLogClient) {
    this.#client = client;
  }

  /** @param parameters of which `source` and `stream` are the filter. */
  read(parameters: URLSearchParams): Promise<CountedMinutes> {
    const names = ["source", "stream"] as const;
    const given = names.flatMap((name) => {
      const value = parameters.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    const key = JSON.stringify(given);
    const counts = this.#counts.get(key) ??
      new MinuteCounts(this.#client, Object.fromEntries(given));
    this.#counts.set(key, counts);
    if (this.#counts.size > FILTERS_MAX) this.#counts.delete(this.#counts.keys().next().value!);
    return counts.read();
  }
}

class MinuteCounts {
  readonly #client: EventLogClient;
  readonly #filter: ReplayOptions;
  #through: string | null = null;
  #counts = new Map<number, number>();
  #reading: Promise<unknown> = Promise.resolve();

  constructor(client: EventLogClient, filter: ReplayOptions) {
    this.#client = client;
    this.#filter = filter;
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
    const options = { ...this.#filter, after, since };
    for await (const { events, nextAfter } of this.#client.replayPages(options)) {
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
