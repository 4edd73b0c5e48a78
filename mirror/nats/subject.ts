/**
 * The NATS subject of an event: `<NATS stream>.<source>.<stream>`. It always has three tokens:
 * `ground.shop.*` selects a source, and `ground.*.orders` selects a stream in every source.
 *
 * Tokens are percent-encoded names. `decodeURIComponent` returns the name, so two names never share
 * a token. Characters that are special in a subject are escaped: dots, which names in the log may
 * contain (`a.b` becomes `a%2Eb`), and whitespace, `*`, `>` and non-ASCII characters, which names
 * currently cannot contain.
 */
import type { CommittedEvent } from "../../mod.ts";

/** Characters that `encodeURIComponent` leaves unescaped, except letters, digits, `-` and `_`. */
const LEFT_OVER = /[.!~*'()]/g;

/**
 * Encodes a name as a subject token, using only letters, digits, `-`, `_` and `%`.
 * @param name a non-empty, well-formed string.
 */
export function subjectToken(name: string): string {
  return encodeURIComponent(name).replace(LEFT_OVER, percentEncoded);
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** Returns the subject of an event in a NATS stream. */
export function subjectOf(
  natsStream: string,
  { source, stream }: Pick<CommittedEvent, "source" | "stream">,
): string {
  return `${natsStream}.${subjectToken(source)}.${subjectToken(stream)}`;
}
