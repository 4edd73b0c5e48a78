/** The picture of events per minute: counted by the server when the page opens, then here. */
import { minuteOf, MINUTES, startOf, timeOf } from "../../support/event_time.ts";
import type { CountedMinutes } from "../minute_counts.ts";
import { byId } from "./elements.ts";
import { open } from "./log_reader.ts";

const SVG = "http://www.w3.org/2000/svg";
const GAP = 0.15;
const REFRESH_MS = 1000;

export class Minutes {
  /** Events by minute since 1970. */
  readonly #counts = new Map<number, number>();
  readonly #svg = byId<SVGSVGElement>("minutes");
  readonly #summary = byId("minutes-summary");

  /** Events that came before the counts of the server did; null once they are here. */
  #early: string[] | null = [];
  /** Events up to this one are in the counts of the server. */
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

  /** Takes over the counts of the server. */
  async load(): Promise<void> {
    const { through, counts }: CountedMinutes = await (await open("/minutes", {})).json();
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
      const time = new Date(startOf(now - MINUTES + 1 + index));
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
