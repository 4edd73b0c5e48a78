/**
 * Collects the values in the columns of a row group, in the forms that `ParquetWriter` takes. The
 * buffers are reused for the next row group.
 */
import { Buffer } from "node:buffer";
import { ByteWriter } from "../../event/byte_writer.ts";
import { ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import { putBytes, viewOf } from "../line/line_bytes.ts";

const INITIAL_BYTES = 64 * 1024;
/** A larger buffer is dropped, so that one very large value does not retain memory. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

/** Values of one size. */
export class FixedColumn {
  readonly bytes: Buffer;
  readonly #sizeBytes: number;
  readonly #views: readonly Uint8Array[];

  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
    const bytes = Buffer.allocUnsafeSlow(sizeBytes * ROW_GROUP_EVENTS_MAX);
    this.bytes = bytes;
    this.#views = Array.from(
      { length: ROW_GROUP_EVENTS_MAX },
      (_, row) => viewOf(bytes, row * sizeBytes, (row + 1) * sizeBytes),
    );
  }

  /** Returns where a row's value belongs in `bytes`. */
  startOf(row: number): number {
    return row * this.#sizeBytes;
  }

  /** Returns the first `rows` values. */
  values(rows: number): Uint8Array[] {
    return this.#views.slice(0, rows);
  }
}

/** Values of any size. A row may have none. */
export class TextColumn extends ByteWriter {
  readonly #ends: number[] = [];
  /** Rows without a value. */
  readonly #absent = new Set<number>();

  constructor() {
    super(INITIAL_BYTES);
  }

  /** Adds a copy of a value. */
  add(from: Uint8Array, start = 0, end: number = from.length): void {
    this.reserve(end - start);
    this.size = putBytes(this.bytes, this.size, from, start, end);
    this.#ends.push(this.size);
  }

  addAbsent(): void {
    this.#absent.add(this.#ends.length);
    this.#ends.push(this.size);
  }

  /** Returns the values of all rows, valid until `clear()`. */
  values(): (Uint8Array | null)[] {
    let start = 0;
    return this.#ends.map((end, row) => {
      const value = this.#absent.has(row) ? null : viewOf(this.bytes, start, end);
      start = end;
      return value;
    });
  }

  clear(): void {
    if (this.bytes.length > KEPT_BYTES_MAX) this.bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
    this.size = 0;
    this.#ends.length = 0;
    this.#absent.clear();
  }
}

/** Values that repeat. Rows with equal values share one object, by which the library finds them. */
export class RepeatedColumn<Value> {
  readonly #byText = new Map<string, Value>();
  #rows: Value[] = [];

  /** Adds the next row. @param decode called once per distinct `text`; returns its value. */
  add(text: string, decode: (text: string) => Value): void {
    let value = this.#byText.get(text);
    if (value === undefined) {
      value = decode(text);
      this.#byText.set(text, value);
    }
    this.#rows.push(value);
  }

  /** Whether a dictionary is smaller than the plain values. */
  get repeats(): boolean {
    return 2 * this.#byText.size <= this.#rows.length;
  }

  values(): Value[] {
    return this.#rows;
  }

  /** Returns each value once. */
  distinct(): Iterable<Value> {
    return this.#byText.values();
  }

  clear(): void {
    this.#byText.clear();
    this.#rows = [];
  }
}
