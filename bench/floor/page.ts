/** A replay page from memory, in chunks of the size that the service writes. */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../src/limits.ts";

export const PAGE_EVENTS = 1000;
/** Sizes of the typical event. */
const LINE_BYTES = 717;
const PAGE_BYTES = PAGE_EVENTS * LINE_BYTES;

export class Page implements AsyncIterable<Uint8Array> {
  readonly #bytes = Buffer.alloc(PAGE_BYTES, "x");

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < PAGE_BYTES; at += READ_CHUNK_BYTES) {
      yield this.#bytes.subarray(at, at + READ_CHUNK_BYTES);
    }
  }
}
