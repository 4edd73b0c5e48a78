/** Creates page elements. Strings from the log become text nodes, never markup. */
import type { CommittedEvent } from "../../../event.ts";
import { timeOf } from "../../support/event_time.ts";

export function byId<T extends Element = HTMLElement>(id: string): T {
  return document.getElementById(id) as Element as T;
}

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  if (className !== "") made.className = className;
  made.append(...children);
  return made;
}

export interface CheckedEvent {
  event: CommittedEvent;
  /** Description of the mismatch; null if both hashes match. */
  fault: string | null;
}

/** Creates a check mark or a cross, with a label for screen readers. */
export function markOf({ fault }: CheckedEvent): HTMLElement {
  const mark = element(
    "span",
    `mark ${fault === null ? "good" : "bad"}`,
    fault === null ? "✓" : "✗",
  );
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", fault ?? "hashes match");
  mark.title = fault ?? "hashes match";
  return mark;
}

/** Shows the date and time of an event's commit. */
export function committedAt(eventId: string): HTMLTimeElement {
  const date = new Date(timeOf(eventId));
  // The Swedish locale formats times as in ISO 8601, which is short and the same for every reader.
  const time = element("time", "", date.toLocaleString("sv"));
  time.dateTime = date.toISOString();
  return time;
}
