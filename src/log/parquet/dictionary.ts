/** Collects a column with repeated values: each value once, and the index of each row. */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import { sameBytes } from "../line/line_bytes.ts";

/** Decodes a value from its text in a line. */
export type Decode = (text: string) => Uint8Array;

export class Dictionary {
  readonly #values: Uint8Array[] = [];
  readonly #indices = new Int32Array(ROW_GROUP_EVENTS_MAX);
  #rows = 0;
  readonly #indicesByText = new Map<string, number>();
  /** The value of the previous row, as a line spells it. */
  #lastText = "";
  #lastSpelling: Buffer | null = null;
  #lastIndex = 0;

  /** The values by index. */
  get values(): readonly Uint8Array[] {
    return this.#values;
  }

  /** The index of each row's value. */
  get indices(): Int32Array {
    return this.#indices.subarray(0, this.#rows);
  }

  /** The next row has the value that [start, end) of a line spells. @returns that text. */
  addSpelled(line: Buffer, start: number, end: number, decode: Decode): string {
    const last = this.#lastSpelling;
    if (last !== null && sameBytes(line, start, end, last, 0, last.length)) {
      this.repeat();
    } else {
      this.addText(line.toString("utf8", start, end), decode);
      // A copy: the memory of the line may be reused.
      this.#lastSpelling = Buffer.from(line.subarray(start, end));
    }
    return this.#lastText;
  }

  /** The next row has the value of a text. */
  addText(text: string, decode: Decode): void {
    const known = this.#indicesByText.get(text);
    if (known === undefined) {
      this.#indicesByText.set(text, this.#values.length);
      this.addValue(decode(text));
    } else {
      this.#lastIndex = known;
      this.repeat();
    }
    this.#lastText = text;
  }

  /** The next row has a value that no earlier row has. */
  addValue(value: Uint8Array): void {
    this.#lastIndex = this.#values.length;
    this.#values.push(value);
    this.repeat();
  }

  /** The next row has the value of the row before. */
  repeat(): void {
    assert(this.#values.length > 0, "there is a value to repeat");
    this.#indices[this.#rows] = this.#lastIndex;
    this.#rows += 1;
  }

  clear(): void {
    this.#values.length = 0;
    this.#indicesByText.clear();
    this.#rows = 0;
    this.#lastSpelling = null;
    this.#lastText = "";
  }
}
