/** The chart of events per minute: initial counts from the server, updated by live events. */
import { minuteOf, MINUTES, startOf, timeOf } from "../../support/event_time.ts";
import type { CountedMinutes } from "../minute_counts.ts";
import { byId, element } from "./elements.ts";
import { type Filter, open } from "./log_reader.ts";

const SVG = "http://www.w3.org/2000/svg";
const GAP = 0.15;
const REFRESH_MS = 1000;

const QUARTERS = [0, 1, 2, 3, 4];

/** Returns the next number that is 2, 4 or 10 times a power of ten, so that its half is whole. */
function roundUp(count: number): number {
  const power = 10 ** Math.floor(Math.log10(count));
  return [1, 2, 4, 10].map((factor) => factor * power).find((number) => number >= count)!;
}

/** Labels the axes: the counts from the top down, and the times from the first minute on. */
function showAxes(most: number, first: number): void {
  const counts = [most, most / 2, 0].map((count) => element("span", "", count.toLocaleString()));
  byId("minutes-counts").replaceChildren(...counts);
  const times = QUARTERS.map((quarter) => {
    const time = new Date(startOf(first + quarter * MINUTES / 4));
    return element("span", "", time.toLocaleTimeString([], { timeStyle: "short" }));
  });
  byId("minutes-times").replaceChildren(...times);
}

export class Minutes {
  /** Event count by minute since the Unix epoch. */
  readonly #counts = new Map<number, number>();
  readonly #svg = byId<SVGSVGElement>("minutes");
  readonly #summary = byId("minutes-summary");

  /** Ids of events received before the server's counts; null once the counts are loaded. */
  #early: string[] | null = [];
  /** Id of the last event included in the server's counts. */
  #through = "";

  constructor() {
    setInterval(() => this.draw(), REFRESH_MS);
  }

  add(eventId: string): void {
    if (this.#early !== null) {
      this.#early.push(eventId);
      return;
    }
    if (eventId <= this.#through) return;
    const minute = minuteOf(timeOf(eventId));
    this.#counts.set(minute, (this.#counts.get(minute) ?? 0) + 1);
  }

  /** Loads the server's counts, then adds the events received earlier. */
  async load(filter: Filter): Promise<void> {
    const response = await open("/minutes", { ...filter });
    const { through, counts }: CountedMinutes = await response.json();
    for (const [minute, count] of counts) this.#counts.set(minute, count);
    this.#through = through ?? "";
    const early = this.#early ?? [];
    this.#early = null;
    early.forEach((id) => this.add(id));
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
    const most = roundUp(Math.max(2, ...counts));
    showAxes(most, now - MINUTES + 1);
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
      const time = new Date(startOf(now - MINUTES + 1 + index));
      title.textContent = `${time.toLocaleTimeString()}: ${count.toLocaleString()} events`;
      bar.append(title);
      return bar;
    }));
    const sum = counts.reduce((total, count) => total + count, 0);
    const text = `Last ${MINUTES} minutes: ${sum.toLocaleString()} events, peak ${
      Math.max(0, ...counts).toLocaleString()
    } per minute, ${counts.at(-1)!.toLocaleString()} in the current minute`;
    if (this.#summary.textContent !== text) this.#summary.textContent = text;
  }
}
