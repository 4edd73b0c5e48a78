/**
 * Performs only the SHA-256 work of reading, sealing and verifying history. Makes the calls that
 * the service makes for typical events, with the same number and lengths of inputs.
 */
import { Buffer } from "node:buffer";
import { createHash, hash } from "node:crypto";

const BATCH_EVENTS = 1000;
/** Sizes of the typical event (support/requests.ts): its line, and its share of a segment. */
const LINE_BYTES = 717;
export const SEALED_BYTES = 103;
/** The typical event's share of the batch digest's input. */
const DIGEST_BYTES = 195;
const PAYLOAD_BYTES = 300;
const ENVELOPE_BYTES = 325;
/** A chain head and the next event's hash. */
const LINK_BYTES = 64;

const bytes = Buffer.alloc(BATCH_EVENTS * LINE_BYTES, "x");

/** Hashes the inputs for one batch of 1,000 events. */
type HashBatch = () => void;

/** Hashes a single input of a given size per event. */
function hashText(bytesPerEvent: number, events = BATCH_EVENTS): void {
  createHash("sha256").update(bytes.subarray(0, events * bytesPerEvent)).digest("hex");
}

/** Hashes one input per event. */
function hashEach(sizeBytes: number, events = BATCH_EVENTS): void {
  for (let event = 0; event < events; event++) {
    hash("sha256", new Uint8Array(bytes.buffer, bytes.byteOffset + event, sizeBytes), "hex");
  }
}

/** Hashes the payloads, envelopes, chain, digest and lines in an appended batch. */
export function hashAppended(events: number): void {
  for (const sizeBytes of [PAYLOAD_BYTES, ENVELOPE_BYTES, LINK_BYTES]) hashEach(sizeBytes, events);
  for (const bytesPerEvent of [DIGEST_BYTES, LINE_BYTES]) hashText(bytesPerEvent, events);
}

export const HASHING: Record<string, HashBatch> = {
  /** Hashes the file and the batch digests. */
  "verify": () => {
    hashText(SEALED_BYTES);
    hashText(DIGEST_BYTES);
  },
  /** Also hashes the payloads, envelopes and chain. */
  "verify --chain": () => {
    hashText(SEALED_BYTES);
    hashText(DIGEST_BYTES);
    hashEach(PAYLOAD_BYTES);
    hashEach(ENVELOPE_BYTES);
    hashEach(LINK_BYTES);
  },
  /**
   * Hashes the lines twice (when the log is opened and when they are read), the chain once, and the
   * file twice (when it is written and when it is read back).
   */
  "seal": () => {
    for (let pass = 0; pass < 2; pass++) hashText(LINE_BYTES);
    hashEach(LINK_BYTES);
    for (let pass = 0; pass < 2; pass++) hashText(SEALED_BYTES);
  },
};

/** Computes the hashes for `events` events. */
export function hashEvents(work: string, events: number): void {
  const hashBatch = HASHING[work]!;
  for (let event = 0; event < events; event += BATCH_EVENTS) hashBatch();
}
