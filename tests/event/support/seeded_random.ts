/**
 * Reproducible randomness for tests: run again with the environment variable SEED to get the same.
 */
import process from "node:process";

/** The seed of this run, to be named in test titles and failures. */
export const SEED: number = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Mulberry32: a small generator with 32 bits of state, good enough to draw test cases. */
export class SeededRandom {
  #state: number;

  constructor(seed: number = SEED) {
    this.#state = seed >>> 0;
  }

  /** An integer of 32 bits without sign. */
  uint32(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** An integer from 0 to below a bound. */
  below(end: number): number {
    return Math.floor(this.uint32() / 2 ** 32 * end);
  }

  chance(probability: number): boolean {
    return this.uint32() < probability * 2 ** 32;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  /** Any finite number, each bit pattern as likely as the other. */
  finiteNumber(): number {
    const view = new DataView(new ArrayBuffer(8));
    do {
      view.setUint32(0, this.uint32());
      view.setUint32(4, this.uint32());
    } while (!Number.isFinite(view.getFloat64(0)));
    return view.getFloat64(0);
  }

  /** A well-formed text from all ranges of Unicode, controls included. */
  text(charsMax: number): string {
    let text = "";
    for (let count = this.below(charsMax + 1); count > 0; count--) {
      const end = this.pick([0x20, 0x80, 0x80, 0x80, 0x800, 0x10000, 0x110000]);
      const point = this.below(end);
      text += point >= 0xd800 && point <= 0xdfff ? "\u{1f600}" : String.fromCodePoint(point);
    }
    return text;
  }

  bytes(into: Uint8Array): void {
    for (let at = 0; at < into.length; at++) into[at] = this.below(256);
  }
}
