/**
 * What malformed requests can have changed in the log: each JSON object that starts where a body
 * can begin in the sent bytes, extracted without the service's code. This finds at least what a
 * strict parser finds, so a batch that is in the log but not here was never sent. The soak's audit
 * checks the rest of the log.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { sha256Hex } from "../../../src/event/hash.ts";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import type { CommittedEvent, Receipt } from "../../../src/event/types.ts";
import { digestOf } from "../../../tools/soak/ledger.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const BLANKS = new Set([0x20, 0x09, CR, LF]);

/** The facts that a receipt states about its batch. */
type Facts = Pick<Receipt, "last_event_id" | "events" | "batch_digest">;

/** A batch with its content. */
function batchKey(source: string, batchId: string, digest: string): string {
  return JSON.stringify([source, batchId, digest]);
}

export class SentMutations {
  readonly #batches = new Set<string>();
  readonly #retiredSources = new Set<string>();
  /** Receipts, and batches in the log, keyed by the id of their first event. */
  readonly #acknowledged = new Map<string, Facts>();
  readonly #logged = new Map<string, Facts>();

  /** Records all bytes sent on a connection since it was opened or last received a response. */
  add(bytes: Buffer): void {
    for (const start of bodyStarts(bytes)) {
      for (const object of [objectAt(bytes, start), objectAt(withoutChunks(bytes, start), 0)]) {
        if (object !== null) this.#addObject(object);
      }
    }
  }

  hasRetirement(source: string): boolean {
    return this.#retiredSources.has(source);
  }

  /** Records a receipt. @param lastId last event id of the connection's previous commit. */
  acknowledge(receipt: Receipt, lastId: string): void {
    const { status, first_event_id, last_event_id, events, batch_digest } = receipt;
    assert.ok(first_event_id <= last_event_id, "ids increase in a batch");
    const known = this.#acknowledged.get(first_event_id);
    const facts = { last_event_id, events, batch_digest };
    assert.deepEqual(known ?? facts, facts, "a batch has one receipt");
    if (status === "committed") {
      assert.ok(first_event_id > lastId, "ids increase from receipt to receipt on a connection");
    }
    this.#acknowledged.set(first_event_id, facts);
  }

  /** Records a batch in the log. @returns whether a client sent it. */
  hold(batch: readonly CommittedEvent[]): boolean {
    const { source, batch_id, event_id } = batch[0]!;
    const digest = digestOf(source, batch);
    this.#logged.set(event_id, {
      last_event_id: batch.at(-1)!.event_id,
      events: batch.length,
      batch_digest: digest,
    });
    return this.#batches.has(batchKey(source, batch_id, digest));
  }

  /** Checks that each receipt matches a batch in the log: ids, count and digest. */
  assertAllHeld(): void {
    for (const [firstEventId, facts] of this.#acknowledged) {
      assert.deepEqual(this.#logged.get(firstEventId), facts, firstEventId);
    }
  }

  #addObject({ source, batch_id, events }: Record<string, unknown>): void {
    if (typeof source !== "string") return;
    if (!Array.isArray(events)) {
      this.#retiredSources.add(source);
      return;
    }
    if (typeof batch_id !== "string") return;
    try {
      const content = events.map((event) => (
        { ...event, content_hash: sha256Hex(canonicalize(event.payload)) }
      ));
      this.#batches.add(batchKey(source, batch_id, digestOf(source, content)));
    } catch (error) {
      // The object has no canonical form, so it cannot have been committed.
      if (!(error instanceof TypeError)) throw error;
    }
  }
}

/** Offsets at which bodies can begin: after an empty line. */
function* bodyStarts(bytes: Buffer): Generator<number> {
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at)) {
    at++;
    if (bytes[at] !== LF && !(bytes[at] === CR && bytes[at + 1] === LF)) continue;
    while (BLANKS.has(bytes[at]!)) at++;
    yield at;
  }
}

/** The JSON object at an offset, or null if there is none. */
function objectAt(bytes: Buffer, start: number): Record<string, unknown> | null {
  while (BLANKS.has(bytes[start]!)) start++;
  if (bytes[start] !== OPEN) return null;
  const end = objectEnd(bytes, start);
  if (end === null) return null;
  try {
    return JSON.parse(UTF8.decode(bytes.subarray(start, end)));
  } catch {
    return null;
  }
}

function objectEnd(bytes: Buffer, start: number): number | null {
  let depth = 0;
  let isInString = false;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) isInString = !isInString;
    else if (!isInString && byte === OPEN) depth++;
    else if (!isInString && byte === CLOSE && --depth === 0) return at + 1;
  }
  return null;
}

/** The content of the well-formed chunks from an offset. */
function withoutChunks(bytes: Buffer, start: number): Buffer {
  const pieces: Buffer[] = [];
  for (let at = start;;) {
    const lineEnd = bytes.indexOf(LF, at);
    const [digits] = /^[0-9a-f]+/i.exec(bytes.toString("latin1", at, at + 16)) ?? [];
    if (lineEnd < 0 || digits === undefined) break;
    const sizeBytes = parseInt(digits, 16);
    if (sizeBytes === 0) break;
    pieces.push(bytes.subarray(lineEnd + 1, lineEnd + 1 + sizeBytes));
    at = lineEnd + 1 + sizeBytes + (bytes[lineEnd + 1 + sizeBytes] === CR ? 2 : 1);
  }
  return Buffer.concat(pieces);
}
