/** The table of streams and their event counts, updated by live events. */
import type { CommittedEvent, StreamSummary } from "../../../event.ts";
import { byId, committedAt, element } from "./elements.ts";

const STREAMS_SHOWN_MAX = 1000;
const REFRESH_MS = 500;

interface Row {
  count: number;
  frontier: string;
  countCell: HTMLElement;
  frontierCell: HTMLElement;
}

export class Streams {
  readonly #body = byId<HTMLTableSectionElement>("streams");
  readonly #rows = new Map<string, Row>();
  readonly #changed = new Set<Row>();

  constructor() {
    setInterval(() => this.#refresh(), REFRESH_MS);
  }

  clear(): void {
    this.#rows.clear();
    this.#changed.clear();
    this.#body.replaceChildren();
  }

  set({ source, stream, event_count, frontier_event_id }: StreamSummary): void {
    const row = this.#rowOf(source, stream);
    if (row === null) return;
    row.count = event_count;
    row.frontier = frontier_event_id;
    this.#changed.add(row);
  }

  add({ source, stream, event_id }: CommittedEvent): void {
    const row = this.#rowOf(source, stream);
    if (row === null) return;
    row.count++;
    row.frontier = event_id;
    this.#changed.add(row);
  }

  /** Number of events in the streams shown. */
  get eventCount(): number {
    return this.#rows.values().reduce((total, { count }) => total + count, 0);
  }

  /** Returns the stream's row, which is added if missing, or null if the table is full. */
  #rowOf(source: string, stream: string): Row | null {
    const key = `${source}/${stream}`;
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    if (this.#rows.size >= STREAMS_SHOWN_MAX) return null;
    const countCell = element("td", "number");
    const frontierCell = element("td", "");
    const name = element("td", "", source);
    this.#body.append(element("tr", "", name, element("td", "", stream), countCell, frontierCell));
    const row = { count: 0, frontier: "", countCell, frontierCell };
    this.#rows.set(key, row);
    return row;
  }

  #refresh(): void {
    for (const { count, frontier, countCell, frontierCell } of this.#changed) {
      countCell.textContent = count.toLocaleString();
      frontierCell.replaceChildren(committedAt(frontier));
    }
    this.#changed.clear();
  }
}
