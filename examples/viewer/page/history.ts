/** Shows the history of one record in a modal dialog. */
import type { CommittedEvent } from "../../../event.ts";
import { byId, committedAt, element, markOf } from "./elements.ts";
import { readPage } from "./log_reader.ts";
import { check } from "./check.ts";

export type RecordName = Pick<CommittedEvent, "source" | "stream" | "record_key">;

export class History {
  readonly #dialog = byId<HTMLDialogElement>("history");
  readonly #list = byId<HTMLOListElement>("history-events");
  readonly #summary = byId("history-summary");
  readonly #more = byId<HTMLButtonElement>("history-more");
  #record: RecordName = { source: "", stream: "", record_key: "" };
  #after: string | null = null;

  constructor() {
    this.#more.addEventListener("click", () => this.#showPage());
  }

  show({ source, stream, record_key }: RecordName): void {
    this.#record = { source, stream, record_key };
    this.#after = null;
    this.#list.replaceChildren();
    byId("history-heading").textContent = `History of ${source} / ${stream} / ${record_key}`;
    this.#dialog.showModal();
    this.#showPage();
  }

  async #showPage(): Promise<void> {
    this.#summary.textContent = "Loading…";
    const record = this.#record;
    try {
      const page = await readPage({ ...record, after: this.#after });
      const items = await Promise.all(page.events.map(itemOf));
      if (record !== this.#record) return;
      this.#list.append(...items);
      this.#after = page.next_after;
      const isEnd = page.next_after === null || page.next_after >= page.snapshot_through_event_id!;
      this.#more.hidden = isEnd;
      const count = this.#list.children.length;
      this.#summary.textContent = `${isEnd ? "" : "first "}${count.toLocaleString()} ${
        count === 1 ? "event" : "events"
      }, oldest first`;
    } catch (error) {
      this.#summary.textContent = (error as Error).message;
    }
  }
}

async function itemOf(event: CommittedEvent): Promise<HTMLLIElement> {
  const line = [` ${event.kind} `, committedAt(event.event_id), ` ${event.event_id}`];
  const payload = element("pre", "", JSON.stringify(event.payload, null, 2));
  return element("li", "", markOf(await check(event)), ...line, payload);
}
