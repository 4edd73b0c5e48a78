/**
 * The SHA-256 that reading, sealing and verifying history can't do without, and nothing else: as
 * many texts of the same lengths as the typical event gives them, by the same calls.
 */
import { Buffer } from "node:buffer";
import { createHash, hash } from "node:crypto";

const BATCH_EVENTS = 1000;
/** Of the typical event (support/requests.ts): its line, and what it takes in a segment. */
const LINE_BYTES = 717;
export const SEALED_BYTES = 103;
/** Its part of the text that the digest of its batch is of. */
const DIGEST_BYTES = 195;
const PAYLOAD_BYTES = 300;
const ENVELOPE_BYTES = 325;
/** A head of the history chain and the hash of the next event. */
const LINK_BYTES = 64;

const bytes = Buffer.alloc(BATCH_EVENTS * LINE_BYTES, "x");

/** Hashes the texts of one batch of 1,000 events. */
type HashBatch = () => void;

/** Hashes a text of so many bytes an event. */
function hashText(bytesPerEvent: number): void {
  createHash("sha256").update(bytes.subarray(0, BATCH_EVENTS * bytesPerEvent)).digest("hex");
}

/** Hashes one text for each event. */
function hashEach(sizeBytes: number): void {
  for (let event = 0; event < BATCH_EVENTS; event++) {
    hash("sha256", new Uint8Array(bytes.buffer, bytes.byteOffset + event, sizeBytes), "hex");
  }
}

export const HASHING: Record<string, HashBatch> = {
  /** The bytes of the file and the digests of the batches. */
  "verify": () => {
    hashText(SEALED_BYTES);
    hashText(DIGEST_BYTES);
  },
  /** Each payload, each envelope and the chain too. */
  "verify --chain": () => {
    hashText(SEALED_BYTES);
    hashText(DIGEST_BYTES);
    hashEach(PAYLOAD_BYTES);
    hashEach(ENVELOPE_BYTES);
    hashEach(LINK_BYTES);
  },
  /**
   * The lines as a start finds them, as they are taken, as they go into the segment and as they
   * come back out of it; the chain; the file as it is written and as it is read back.
   */
  "seal": () => {
    for (let pass = 0; pass < 4; pass++) hashText(LINE_BYTES);
    hashEach(LINK_BYTES);
    for (let pass = 0; pass < 2; pass++) hashText(SEALED_BYTES);
  },
};

/** Hashes what so many events give. */
export function hashEvents(work: string, events: number): void {
  const hashBatch = HASHING[work]!;
  for (let event = 0; event < events; event += BATCH_EVENTS) hashBatch();
}
