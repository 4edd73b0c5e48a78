/** Elements of the page. Text from the log only ever becomes text nodes. */
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
  /** What doesn't match; null if both hashes do. */
  fault: string | null;
}

/** A sign for the eye and words for a screen reader. */
export function markOf({ fault }: CheckedEvent): HTMLElement {
  const mark = element(
    "span",
    `mark ${fault === null ? "good" : "bad"}`,
    fault === null ? "✓" : "✗",
  );
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", fault ?? "hashes verify");
  mark.title = fault ?? "hashes verify";
  return mark;
}

/** When an event was committed: the time alone if that was today. */
export function committedAt(eventId: string): HTMLTimeElement {
  const date = new Date(timeOf(eventId));
  const isToday = date.toDateString() === new Date().toDateString();
  const time = element("time", "", isToday ? date.toLocaleTimeString() : date.toLocaleString());
  time.dateTime = date.toISOString();
  time.title = date.toLocaleString();
  return time;
}
