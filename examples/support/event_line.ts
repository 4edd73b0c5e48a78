/** Formats an event as one line. */
import type { CommittedEvent } from "../../mod.ts";

/** Formats id, source and stream, kind and record key, separated by spaces. */
export function formatEvent(event: CommittedEvent): string {
  const { event_id, source, stream, kind, record_key } = event;
  return `${event_id} ${source}/${stream} ${printable(kind)} ${printable(record_key)}`;
}

/** Formats the complete event as JSON. */
export function formatEventJson(event: CommittedEvent): string {
  return JSON.stringify(event);
}

/**
 * Escapes control and format characters and line separators, which could affect a terminal.
 */
function printable(text: string): string {
  return text.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`,
  );
}
