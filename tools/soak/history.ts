/**
 * The log as the audit has read it. Every replay, follow and stream listing must exactly match the
 * part of the history that it covers.
 */
import type { ReplayFilter } from "../../src/client/replay.ts";
import type { CommittedEvent, StreamSummary } from "../../src/event/types.ts";
import { EventTrace } from "./event_trace.ts";
import { claim, Violation } from "./violation.ts";

/** An observation by a reader or follower. */
export interface Observation {
  /** Name of the observer, for messages. */
  observer: string;
  /** Any filter except `recordKey`. */
  filter: ReplayFilter;
  /** Start of the range, exclusive. Null stands for the beginning of the log. */
  after: string | null;
  /** End of the range, inclusive. */
  through: string;
  /** The events in this range that match the filter. */
  seen: EventTrace;
}

/** A listing of all streams. */
export interface Listing {
  observer: string;
  /** The id of the last event that the listing counts. */
  through: string;
  streams: StreamSummary[];
}

/** The source, stream and kind of an event. Few combinations exist. */
type Label = Pick<CommittedEvent, "source" | "stream" | "kind">;

export class History {
  readonly #trace = new EventTrace();
  readonly #labels: Label[] = [];
  readonly #labelNumbers = new Map<string, number>();
  /** Index of each event's label. */
  #labelOf = new Uint16Array(1024);
  #lastEventId: string | null = null;

  /** Number of events. */
  get length(): number {
    return this.#trace.length;
  }

  /** The newest event; null if there is none. */
  get lastEventId(): string | null {
    return this.#lastEventId;
  }

  /** Whether the log contains an event. */
  has(eventId: string): boolean {
    const count = this.#trace.countThrough(eventId);
    return count > 0 && this.#trace.idAt(count - 1) === eventId;
  }

  /** Adds the next event. @throws {Violation} if its id does not follow the previous one. */
  add(event: CommittedEvent): void {
    const last = this.#lastEventId;
    const isNext = last === null || last < event.event_id;
    claim(isNext, `event ${event.event_id} follows ${last} in the log`);
    this.#lastEventId = event.event_id;
    const place = this.#trace.length;
    if (place === this.#labelOf.length) {
      const grown = new Uint16Array(2 * place);
      grown.set(this.#labelOf);
      this.#labelOf = grown;
    }
    this.#labelOf[place] = this.#labelNumber(event);
    this.#trace.add(event);
  }

  /** Whether the history covers an observation or listing. */
  covers({ through }: { through: string }): boolean {
    return this.#lastEventId !== null && through <= this.#lastEventId;
  }

  /** @throws {Violation} if an observation contradicts the log. */
  check({ observer, filter, after, through, seen }: Observation): void {
    const start = after === null ? 0 : this.#trace.countThrough(after);
    const end = Math.max(start, this.#trace.countThrough(through));
    const part = isEmpty(filter)
      ? { trace: this.#trace, start, end }
      : this.#filtered(filter, start, end);
    const difference = seen.firstDifference(part.trace, part.start, part.end);
    if (difference < 0) return;
    const expected = part.start + difference < part.end
      ? part.trace.idAt(part.start + difference)
      : "nothing";
    const found = difference < seen.length ? seen.idAt(difference) : "nothing";
    const range = `after ${after ?? "the beginning"} through ${through}`;
    const counts = `${seen.length} of ${part.end - part.start} events ${range}`;
    throw new Violation(
      `${observer} saw ${counts}: position ${difference} is ${found}, not ${expected}`,
    );
  }

  /** @throws {Violation} if a listing contradicts the log. */
  checkListing({ observer, through, streams }: Listing): void {
    const expected = this.#streamsThrough(this.#trace.countThrough(through));
    for (const { source, stream, event_count, frontier_event_id } of streams) {
      const name = `${source}/${stream}`;
      const found = `${event_count} events through ${frontier_event_id}`;
      const wanted = expected.get(name) ?? "no such stream";
      claim(found === wanted, `${observer} listed ${name} with ${found}, expected ${wanted}`);
      expected.delete(name);
    }
    claim(expected.size === 0, `${observer} did not list ${[...expected.keys()].join(", ")}`);
  }

  #labelNumber({ source, stream, kind }: Label): number {
    const name = `${source}\n${stream}\n${kind}`;
    let number = this.#labelNumbers.get(name);
    if (number === undefined) {
      number = this.#labels.length;
      this.#labels.push({ source, stream, kind });
      this.#labelNumbers.set(name, number);
    }
    return number;
  }

  #filtered(filter: ReplayFilter, start: number, end: number) {
    const isMatch = this.#labels.map((label) =>
      (["source", "stream", "kind"] as const).every((name) =>
        filter[name] === undefined || filter[name] === label[name]
      )
    );
    const trace = new EventTrace();
    for (let place = start; place < end; place++) {
      if (isMatch[this.#labelOf[place]!]) trace.addFrom(this.#trace, place);
    }
    return { trace, start: 0, end: trace.length };
  }

  /** Returns the count and last event in each stream. */
  #streamsThrough(end: number): Map<string, string> {
    const counts = new Uint32Array(this.#labels.length);
    const lasts = new Uint32Array(this.#labels.length);
    for (let place = 0; place < end; place++) {
      const label = this.#labelOf[place]!;
      counts[label]! += 1;
      lasts[label] = place;
    }
    const streams = new Map<string, { count: number; last: number }>();
    this.#labels.forEach(({ source, stream }, label) => {
      if (counts[label] === 0) return;
      const name = `${source}/${stream}`;
      const { count, last } = streams.get(name) ?? { count: 0, last: 0 };
      const merged = { count: count + counts[label]!, last: Math.max(last, lasts[label]!) };
      streams.set(name, merged);
    });
    const rows = [...streams].map(([name, { count, last }]) => {
      return [name, `${count} events through ${this.#trace.idAt(last)}`] as const;
    });
    return new Map(rows);
  }
}

function isEmpty({ source, stream, kind }: ReplayFilter): boolean {
  return source === undefined && stream === undefined && kind === undefined;
}
