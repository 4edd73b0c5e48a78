/**
 * Where an event goes in NATS: the subject `<stream>.<source>.<stream of the log>`, always three
 * tokens, so that `ground.shop.*` is one source and `ground.*.orders` one stream of all sources.
 *
 * A token is the name in percent-encoding: `decodeURIComponent` gives the name back, and two names
 * never share a token. That keeps apart what would mean something in a subject: dots, which names
 * of the log may have (`a.b` becomes `a%2Eb`), and blanks, `*`, `>` and whatever is not ASCII,
 * which they may not have today.
 */
import type { CommittedEvent } from "../../mod.ts";

/** What `encodeURIComponent` leaves, besides letters, digits, `-` and `_`. */
const LEFT_OVER = /[.!~*'()]/g;

/**
 * One token of a subject, of letters, digits, `-`, `_` and `%`.
 * @param name Well-formed and not empty.
 */
export function subjectToken(name: string): string {
  return encodeURIComponent(name).replace(LEFT_OVER, percentEncoded);
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** The subject of an event in a stream of NATS. */
export function subjectOf(
  natsStream: string,
  { source, stream }: Pick<CommittedEvent, "source" | "stream">,
): string {
  return `${natsStream}.${subjectToken(source)}.${subjectToken(stream)}`;
}
