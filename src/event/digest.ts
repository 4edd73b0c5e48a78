/**
 * The batch digest: what makes two submissions under one batch id the same. It covers the version,
 * the source and, in order, what each event says; not the batch id, the precondition, or anything
 * the service assigns.
 */
import { sha256Hex } from "./hash.ts";
import { quoteString } from "./quote_string.ts";
import type { PreparedEvent } from "./types.ts";

/**
 * SHA-256, 64 lowercase hex digits, of the RFC 8785 text of
 * `{v, source, events: [{stream, record_key, kind, content_hash, occurred_at?}]}`.
 */
export function batchDigest(source: string, events: readonly PreparedEvent[]): string {
  // Members stand in canonical order by construction.
  let text = '{"events":[';
  for (let index = 0; index < events.length; index++) {
    if (index > 0) text += ",";
    text += digestItem(events[index]!);
  }
  return sha256Hex(text + '],"source":' + quoteString(source) + ',"v":1}');
}

function digestItem(event: PreparedEvent): string {
  const occurredAt = event.occurredAt === undefined
    ? ""
    : ',"occurred_at":"' + event.occurredAt + '"';
  return '{"content_hash":"' + event.contentHash +
    '","kind":' + quoteString(event.kind) + occurredAt +
    ',"record_key":' + quoteString(event.recordKey) +
    ',"stream":"' + event.stream + '"}';
}
