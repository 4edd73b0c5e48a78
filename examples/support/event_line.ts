/** Prints events on one line each, whatever they contain. */
import type { CommittedEvent } from "../../mod.ts";

/** Id, source and stream, kind and record key, separated by spaces. */
export function formatEvent(event: CommittedEvent): string {
  const { event_id, source, stream, kind, record_key } = event;
  return `${event_id} ${source}/${stream} ${printable(kind)} ${printable(record_key)}`;
}

/** The complete event as JSON. */
export function formatEventJson(event: CommittedEvent): string {
  return JSON.stringify(event);
}

/** Escapes controls, invisible characters and line breaks, which might act on a terminal. */
function printable(text: string): string {
  return text.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`,
  );
}
