/**
 * The table of the newest events. Its row count and its update rate are bounded, no matter how fast
 * the log grows. It is not updated while it is paused or has focus.
 */
import type { CommittedEvent } from "../../../event.ts";
import { byId, type CheckedEvent, committedAt, element, markOf } from "./elements.ts";

export const ROWS_MAX = 200;
const PAYLOAD_CHARS_MAX = 300;
const REFRESH_MS = 250;

export class LiveList {
  readonly #rows = byId<HTMLTableSectionElement>("events");
  readonly #pause = byId<HTMLButtonElement>("pause");
  readonly #held = byId("held");
  readonly #newer = byId("newer");
  readonly #onRecord: (event: CommittedEvent) => void;
  /** Events not yet shown, oldest first. */
  #waiting: CheckedEvent[] = [];
  #waitingCount = 0;

  constructor(onRecord: (event: CommittedEvent) => void) {
    this.#onRecord = onRecord;
    this.#pause.addEventListener("click", () => {
      this.#pause.setAttribute("aria-pressed", String(!this.#isPaused));
      this.#refresh();
    });
    setInterval(() => this.#refresh(), REFRESH_MS);
  }

  add(events: CheckedEvent[]): void {
    this.#waiting = [...this.#waiting, ...events].slice(-ROWS_MAX);
    this.#waitingCount += events.length;
  }

  get #isPaused(): boolean {
    return this.#pause.getAttribute("aria-pressed") === "true";
  }

  #refresh(): void {
    if (this.#isPaused || this.#rows.contains(document.activeElement)) {
      // Screen readers announce this status once; the count below is not announced.
      if (this.#held.textContent === "") this.#held.textContent = "The list is paused";
      this.#newer.textContent = `${this.#waitingCount.toLocaleString()} newer events`;
      return;
    }
    if (this.#held.textContent !== "") this.#held.textContent = this.#newer.textContent = "";
    if (this.#waiting.length === 0) return;
    this.#rows.prepend(...this.#waiting.reverse().map((checked) => this.#rowOf(checked)));
    this.#waiting = [];
    this.#waitingCount = 0;
    while (this.#rows.rows.length > ROWS_MAX) this.#rows.lastElementChild!.remove();
  }

  #rowOf(checked: CheckedEvent): HTMLTableRowElement {
    const { event } = checked;
    const record = element("button", "", event.record_key);
    record.type = "button";
    record.title = `History of ${event.record_key}`;
    record.addEventListener("click", () => this.#onRecord(event));
    const payload = JSON.stringify(event.payload).slice(0, PAYLOAD_CHARS_MAX);
    return element(
      "tr",
      "",
      element("td", "", markOf(checked)),
      element("td", "", committedAt(event.event_id)),
      element("td", "", `${event.source} / ${event.stream}`),
      element("td", "", event.kind),
      element("td", "", record),
      element("td", "payload", payload),
    );
  }
}
