/**
 * The NATS subject of an event: `<stream>.<source>.<stream of the log>`, always three tokens, so
 * that `ground.shop.*` is one source and `ground.*.orders` one stream of all sources.
 *
 * A token is the percent-encoded name: `decodeURIComponent` returns the name, and two names never
 * share a token. It escapes what has a meaning in a subject: dots, which names of the log may
 * contain (`a.b` becomes `a%2Eb`), and blanks, `*`, `>` and everything outside ASCII, which they
 * may not contain today.
 */
import type { CommittedEvent } from "../../mod.ts";

/** Characters that `encodeURIComponent` keeps, besides letters, digits, `-` and `_`. */
const LEFT_OVER = /[.!~*'()]/g;

/**
 * A token of a subject, of letters, digits, `-`, `_` and `%`.
 * @param name well-formed and not empty.
 */
export function subjectToken(name: string): string {
  return encodeURIComponent(name).replace(LEFT_OVER, percentEncoded);
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** The subject of an event in a NATS stream. */
export function subjectOf(
  natsStream: string,
  { source, stream }: Pick<CommittedEvent, "source" | "stream">,
): string {
  return `${natsStream}.${subjectToken(source)}.${subjectToken(stream)}`;
}
