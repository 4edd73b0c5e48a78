/** Checks stored lines against the rules of ingest, except those that depend on other batches. */
import { Buffer, isUtf8 } from "node:buffer";
import { ByteWriter } from "../../event/byte_writer.ts";
import { CanonicalCopy } from "../../event/json/canonical_copy.ts";
import { canonicalize } from "../../event/json/canonical_json.ts";
import { OBSERVED_AT_CHARS } from "../../event/line_layout.ts";
import { lineageMarker } from "../../event/lineage.ts";
import * as names from "../../event/names.ts";
import * as system from "../../event/system_names.ts";
import { formatTimestamp, occurredAtFault } from "../../event/timestamp.ts";
import { BATCH_EVENTS_MAX, PAYLOAD_DEPTH_MAX } from "../../limits.ts";
import { needsEscape, sameBytes, unescapedText, viewOf } from "./line_bytes.ts";
import type { StoredEvent } from "./stored_event.ts";

type Rule = (text: string) => string | null;
const SYSTEM = Buffer.from(system.SYSTEM_SOURCE);
const LINEAGE = Buffer.from(system.SOURCE_LINEAGE_STREAM);
const NUL = Buffer.alloc(1);
const RETIREMENT = new RegExp(`^${system.RESERVED_BATCH_PREFIX}retire/([^/]+)/([0-9a-f-]{36})$`);

export class IngestRules {
  readonly #scratch = new ByteWriter(64 * 1024);
  #events = 0;
  #observedAt = Buffer.alloc(0);

  /** Returns the first rule that a line violates; null if a request can have produced it. */
  faultIn(event: StoredEvent, isFirst: boolean): string | null {
    const { bytes, recordKeyStart, occurredAtStart, payloadStart, payloadEnd } = event;
    if (!isUtf8(viewOf(bytes, event.sourceStart, event.batchIdEnd))) return "it is not UTF-8";
    this.#events = isFirst ? 1 : this.#events + 1;
    if (this.#events > BATCH_EVENTS_MAX) return `its batch exceeds ${BATCH_EVENTS_MAX} events`;
    const at = event.observedAtStart;
    if (isFirst) this.#observedAt = Buffer.from(viewOf(bytes, at, at + OBSERVED_AT_CHARS));
    const isSame = sameBytes(bytes, at, at + OBSERVED_AT_CHARS, this.#observedAt);
    if (!isSame || isFirst && !isTime(`${this.#observedAt}`)) return "its observed_at is invalid";
    if (!this.#isCanonical(bytes, payloadStart, payloadEnd)) return "its payload is not canonical";
    const fault = faultOf(names.nameFault, bytes, event.streamStart, event.streamEnd) ??
      faultOf(names.recordKeyFault, bytes, recordKeyStart, event.recordKeyEnd) ??
      faultOf(names.kindFault, bytes, event.kindStart, event.kindEnd) ??
      (occurredAtStart < 0
        ? null
        : faultOf(occurredAtFault, bytes, occurredAtStart, event.occurredAtEnd));
    return fault === null ? specialFault(event, isFirst) : `a member ${fault}`;
  }

  #isCanonical(bytes: Buffer, start: number, end: number): boolean {
    const payload = viewOf(bytes, start, end);
    const [scratch, inputEnd] = [this.#scratch, payload.length];
    scratch.size = 0;
    scratch.append(payload);
    scratch.append(NUL);
    return new CanonicalCopy(scratch, inputEnd).copy(0, PAYLOAD_DEPTH_MAX) === inputEnd &&
      scratch.bytes.compare(payload, 0, inputEnd, inputEnd + 1, scratch.size) === 0;
  }
}

function isTime(text: string): boolean {
  const timeMs = Date.parse(text);
  return !Number.isNaN(timeMs) && formatTimestamp(timeMs) === text;
}

function faultOf(rule: Rule, bytes: Buffer, start: number, end: number): string | null {
  if (!needsEscape(bytes, start, end)) return rule(bytes.toString("utf8", start, end));
  const text = unescapedText(bytes, start, end);
  return text === null ? "is not in canonical form" : rule(Buffer.from(text).toString());
}

/** Checks the source and batch id, and the service's own events and lineage markers. */
function specialFault(event: StoredEvent, isFirst: boolean): string | null {
  const { bytes, sourceStart, sourceEnd, batchIdStart, batchIdEnd, streamStart, streamEnd } = event;
  const isSystem = sameBytes(bytes, sourceStart, sourceEnd, SYSTEM);
  if (isFirst && !isSystem) {
    const fault = faultOf(names.sourceFault, bytes, sourceStart, sourceEnd) ??
      faultOf(names.batchIdFault, bytes, batchIdStart, batchIdEnd);
    if (fault !== null) return `its source or batch_id ${fault}`;
  }
  if (!isSystem && !sameBytes(bytes, streamStart, streamEnd, LINEAGE)) return null;
  if (!isFirst) return "it must be the first event in its batch";
  const textIn = (start: number, end: number) => bytes.toString("utf8", start, end);
  const [stream, kind] = [textIn(streamStart, streamEnd), textIn(event.kindStart, event.kindEnd)];
  const record_key = textIn(event.recordKeyStart, event.recordKeyEnd);
  const payload = textIn(event.payloadStart, event.payloadEnd);
  if (isSystem) {
    const [, source, final_frontier] = RETIREMENT.exec(textIn(batchIdStart, batchIdEnd)) ?? [];
    const isRetirement = stream === system.SOURCE_LIFECYCLE_STREAM && record_key === source &&
      kind === system.SOURCE_RETIRED_KIND && event.occurredAtStart < 0 &&
      payload === canonicalize({ v: 1, source, final_frontier });
    return isRetirement ? null : "it is not one of the service's own";
  }
  const occurred_at = event.occurredAtStart < 0 ? {} : { occurred_at: "present" };
  const marker = { stream, record_key, kind, ...occurred_at, payload: JSON.parse(payload) };
  try {
    lineageMarker(textIn(sourceStart, sourceEnd), marker);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
