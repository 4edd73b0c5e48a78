/** Dictionary-encodes a column: each distinct value once, and an index per row. */
import { ROW_GROUP_EVENTS_MAX } from "../../limits.ts";

export class Dictionary {
  readonly values: Uint8Array[] = [];
  readonly #indices = new Uint16Array(ROW_GROUP_EVENTS_MAX);
  #rows = 0;
  readonly #indicesByText = new Map<string, number>();

  /** One index per row. */
  get indices(): Uint16Array {
    return this.#indices.subarray(0, this.#rows);
  }

  /** Adds the next row. @param decode called once per distinct `text`; returns its value. */
  add(text: string, decode: (text: string) => Uint8Array): void {
    let index = this.#indicesByText.get(text);
    if (index === undefined) {
      index = this.values.push(decode(text)) - 1;
      this.#indicesByText.set(text, index);
    }
    this.#indices[this.#rows++] = index;
  }

  clear(): void {
    this.values.length = 0;
    this.#indicesByText.clear();
    this.#rows = 0;
  }
}
