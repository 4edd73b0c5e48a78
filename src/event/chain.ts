/**
 * The history chain: one hash that commits to every event and its place. From the genesis head on,
 * head_n = H(raw head_{n-1} || raw event_hash_n), each 32 bytes.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { sha256, sha256Hex } from "./hash.ts";

const HASH_BYTES = 32;

/** Head of the empty history, in hex. */
export const GENESIS_HEAD_HEX: string = sha256Hex("service/genesis/v1");

/** Head of the empty history. */
export const GENESIS_HEAD: Uint8Array = sha256("service/genesis/v1");

/** Follows the chain event by event. */
export class HistoryChain {
  /** The head, then room for the next event hash. */
  readonly #link: Buffer = Buffer.alloc(2 * HASH_BYTES);

  /** @param head 64 lowercase hex digits. */
  constructor(head: string = GENESIS_HEAD_HEX) {
    this.#put(head, 0);
  }

  /** The head after all events so far, 64 lowercase hex digits. */
  get head(): string {
    return this.#link.toString("hex", 0, HASH_BYTES);
  }

  /** Takes the next event into the chain. @param eventHash 64 lowercase hex digits. */
  append(eventHash: string): void {
    this.#put(eventHash, HASH_BYTES);
    this.#link.set(sha256(this.#link), 0);
  }

  #put(hashHex: string, at: number): void {
    const written = this.#link.write(hashHex, at, HASH_BYTES, "hex");
    assert(hashHex.length === 2 * HASH_BYTES && written === HASH_BYTES, "a hash has 64 hex digits");
  }
}

/** The head after one more event. Takes and returns 32 raw bytes. */
export function nextHead(head: Uint8Array, eventHash: Uint8Array): Uint8Array {
  assert(head.length === HASH_BYTES && eventHash.length === HASH_BYTES, "a hash has 32 bytes");
  return sha256(Buffer.concat([head, eventHash]));
}
