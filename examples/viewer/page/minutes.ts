/**
 * The picture of events per minute. Past minutes are counted without reading their events: the
 * first event of each minute is looked up, and the streams are counted up to it.
 */
import { positionAt, timeOf } from "../../support/event_time.ts";
import { byId } from "./elements.ts";
import { readPage, readStreams } from "./log_reader.ts";

const MINUTES = 60;
const MINUTE_MS = 60_000;
const SVG = "http://www.w3.org/2000/svg";
const GAP = 0.15;

const minuteOf = (ms: number) => Math.floor(ms / MINUTE_MS);

/** Events of the log up to one event. */
export async function countThrough(through: string): Promise<number> {
  let count = 0;
  for (let after: string | null = null;;) {
    const page = await readStreams({ through, after, limit: 1000 });
    for (const { event_count } of page.streams) count += event_count;
    if (page.next_after === null) return count;
    after = page.next_after;
  }
}

export class Minutes {
  /** Events by minute since 1970. */
  readonly #counts = new Map<number, number>();
  readonly #svg = byId<SVGSVGElement>("minutes");
  readonly #summary = byId("minutes-summary");

  constructor() {
    setInterval(() => this.draw(), 1000);
  }

  add(eventId: string): void {
    const minute = minuteOf(timeOf(eventId));
    this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + 1);
  }

  /** Counts the events of the last hour up to and with `frontier`. */
  async countPast(frontier: string): Promise<void> {
    const total = await countThrough(frontier);
    let countAfter = total;
    const now = minuteOf(Date.now());
    for (let minute = now; minute > now - MINUTES; minute--) {
      const { events: [first] } = await readPage({
        after: positionAt(minute * MINUTE_MS),
        limit: 1,
      });
      const isNone = first === undefined || first.event_id > frontier;
      const before = isNone ? total : await countThrough(first.event_id) - 1;
      const count = countAfter - before;
      if (count > 0) this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + count);
      countAfter = before;
      if (before === 0) break;
    }
    this.draw();
  }

  draw(): void {
    const now = minuteOf(Date.now());
    for (const minute of this.#counts.keys()) {
      if (minute <= now - MINUTES) this.#counts.delete(minute);
    }
    const counts = Array.from(
      { length: MINUTES },
      (_, index) => this.#counts.get(now - MINUTES + 1 + index) ?? 0,
    );
    const most = Math.max(1, ...counts);
    this.#svg.setAttribute("viewBox", `0 0 ${MINUTES} 1`);
    this.#svg.setAttribute("preserveAspectRatio", "none");
    this.#svg.replaceChildren(...counts.map((count, index) => {
      const bar = document.createElementNS(SVG, "rect");
      const height = count / most;
      bar.setAttribute("x", String(index + GAP / 2));
      bar.setAttribute("y", String(1 - height));
      bar.setAttribute("width", String(1 - GAP));
      bar.setAttribute("height", String(height));
      const title = document.createElementNS(SVG, "title");
      const time = new Date((now - MINUTES + 1 + index) * MINUTE_MS);
      title.textContent = `${time.toLocaleTimeString()}: ${count.toLocaleString()} events`;
      bar.append(title);
      return bar;
    }));
    const sum = counts.reduce((total, count) => total + count, 0);
    const text = `The last ${MINUTES} minutes: ${sum.toLocaleString()} events, at most ${
      Math.max(0, ...counts).toLocaleString()
    } in a minute, ${counts.at(-1)!.toLocaleString()} in this one`;
    if (this.#summary.textContent !== text) this.#summary.textContent = text;
  }
}
