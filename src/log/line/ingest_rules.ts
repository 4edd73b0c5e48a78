/** Checks stored lines against the rules of ingest, except those that depend on other batches. */
import { Buffer, isUtf8 } from "node:buffer";
import { ByteWriter } from "../../event/byte_writer.ts";
import { CanonicalCopy } from "../../event/json/canonical_copy.ts";
import { canonicalize } from "../../event/json/canonical_json.ts";
import { parseJson } from "../../event/json/strict_json.ts";
import { lineageMarker } from "../../event/lineage.ts";
import * as names from "../../event/names.ts";
import * as system from "../../event/system_names.ts";
import { formatTimestamp, occurredAtFault } from "../../event/timestamp.ts";
import { BATCH_EVENTS_MAX, PAYLOAD_DEPTH_MAX } from "../../limits.ts";
import { needsEscape, sameBytes, unescapedText, viewOf } from "./line_bytes.ts";
import { OBSERVED_AT_CHARS } from "./line_layout.ts";
import type { StoredEvent } from "./stored_event.ts";

type Rule = (text: string) => string | null;
const SYSTEM = Buffer.from(system.SYSTEM_SOURCE);
const LINEAGE = Buffer.from(system.SOURCE_LINEAGE_STREAM);
const RETIREMENT = new RegExp(`^${system.RESERVED_BATCH_PREFIX}retire/([^/]+)/([0-9a-f-]{36})$`);

export class IngestRules {
  readonly #scratch = new ByteWriter(64 * 1024);
  #events = 0;
  #observedAt = Buffer.alloc(0);
  readonly #stream = new Checked(names.nameFault);
  readonly #kind = new Checked(names.kindFault);
  /** Its input ends at this offset in the scratch buffer, whatever its size. */
  #inputEnd = 0;
  #copy: CanonicalCopy | null = null;

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
    const fault = this.#stream.faultIn(bytes, event.streamStart, event.streamEnd) ??
      faultOf(names.recordKeyFault, bytes, recordKeyStart, event.recordKeyEnd) ??
      this.#kind.faultIn(bytes, event.kindStart, event.kindEnd) ??
      (occurredAtStart < 0
        ? null
        : faultOf(occurredAtFault, bytes, occurredAtStart, event.occurredAtEnd));
    return fault === null ? specialFault(event, isFirst) : `a member ${fault}`;
  }

  #isCanonical(bytes: Buffer, start: number, end: number): boolean {
    const scratch = this.#scratch;
    const sizeBytes = end - start;
    if (sizeBytes > this.#inputEnd) {
      this.#inputEnd = 2 * sizeBytes;
      this.#copy = new CanonicalCopy(scratch, this.#inputEnd);
    }
    const inputEnd = this.#inputEnd;
    scratch.size = inputEnd + 1;
    scratch.reserve(sizeBytes);
    scratch.bytes.set(viewOf(bytes, start, end), inputEnd - sizeBytes);
    scratch.bytes[inputEnd] = 0;
    if (this.#copy!.copy(inputEnd - sizeBytes, PAYLOAD_DEPTH_MAX) === inputEnd) {
      const copied = viewOf(scratch.bytes, inputEnd + 1, scratch.size);
      return Buffer.compare(viewOf(bytes, start, end), copied) === 0;
    }
    try {
      const value = parseJson(viewOf(bytes, start, end));
      return canonicalize(value, PAYLOAD_DEPTH_MAX) === bytes.toString("utf8", start, end);
    } catch {
      return false;
    }
  }
}

/** A string member. Repetitions of its last valid value are not checked again. */
class Checked {
  readonly #rule: Rule;
  #last: Uint8Array | null = null;

  constructor(rule: Rule) {
    this.#rule = rule;
  }

  faultIn(bytes: Buffer, start: number, end: number): string | null {
    if (this.#last !== null && sameBytes(bytes, start, end, this.#last)) return null;
    const fault = faultOf(this.#rule, bytes, start, end);
    if (fault === null) this.#last = Buffer.from(viewOf(bytes, start, end));
    return fault;
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
  const recordKey = textIn(event.recordKeyStart, event.recordKeyEnd);
  const payload = textIn(event.payloadStart, event.payloadEnd);
  if (isSystem) {
    const [, source, final_frontier] = RETIREMENT.exec(textIn(batchIdStart, batchIdEnd)) ?? [];
    const isRetirement = stream === system.SOURCE_LIFECYCLE_STREAM && recordKey === source &&
      kind === system.SOURCE_RETIRED_KIND && event.occurredAtStart < 0 &&
      payload === canonicalize({ v: 1, source, final_frontier });
    return isRetirement ? null : "it is not one of the service's own";
  }
  const occurredAt = event.occurredAtStart < 0 ? undefined : "present";
  try {
    lineageMarker(textIn(sourceStart, sourceEnd), [{
      stream,
      recordKey,
      kind,
      occurredAt,
      payload,
    }]);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
