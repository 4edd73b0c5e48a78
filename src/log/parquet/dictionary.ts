/** Collects a column with repeated values: each value once, and the index of each row. */
import { ROW_GROUP_EVENTS_MAX } from "../../limits.ts";

export class Dictionary {
  /** The values by index. */
  readonly values: Uint8Array[] = [];
  readonly #indices = new Uint16Array(ROW_GROUP_EVENTS_MAX);
  #rows = 0;
  readonly #indicesByText = new Map<string, number>();

  /** The index of each row's value. */
  get indices(): Uint16Array {
    return this.#indices.subarray(0, this.#rows);
  }

  /** The next row has the value that `decode` makes of a text. */
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
