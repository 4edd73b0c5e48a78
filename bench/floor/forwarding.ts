/** An endless response that pushes data, to measure the minimum cost of delivery to a follower. */
import { Buffer } from "node:buffer";

/** The follow response that the service's clients expect. */
const CAUGHT_UP = Buffer.from('{"type":"caught_up"}\n');
const EVENT_START = Buffer.from('{"event_id":"","batch":');
const EVENT_END = Buffer.from("}\n");

export class Forwarding implements AsyncIterable<Uint8Array> {
  #waiting: Uint8Array[] = [CAUGHT_UP];
  #wake: (() => void) | null = null;

  push(body: Uint8Array): void {
    this.#waiting.push(Buffer.concat([EVENT_START, body, EVENT_END]));
    this.#wake?.();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return { next: () => this.#next() };
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    while (this.#waiting.length === 0) await new Promise<void>((wake) => this.#wake = wake);
    return { done: false, value: this.#waiting.shift()! };
  }
}
