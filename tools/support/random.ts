/** Seeded pseudo-random numbers, so that a failing test can be rerun. */
import process from "node:process";

/** Numbers in [0, 1), by xorshift32. */
export type Random = () => number;

/** Returns SEED from the environment, or a random seed. Test titles must include it. */
export function testSeed(): number {
  return Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
}

export function seededRandom(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) | 0 || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  // Skip the first numbers, which are similar for similar seeds.
  for (let i = 0; i < 16; i++) next();
  return next;
}

/** Returns an integer from `min` to `max`, inclusive. */
export function randomInteger(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1));
}

export function randomItem<T>(random: Random, items: readonly T[]): T {
  return items[randomInteger(random, 0, items.length - 1)]!;
}

/** The seed for this process. */
export const SEED: number = testSeed();

/** A generator of test data. */
export class SeededRandom {
  readonly #next: Random;

  constructor(seed: number = SEED) {
    this.#next = seededRandom(seed);
  }

  /** Returns an unsigned 32-bit integer. */
  uint32(): number {
    return this.below(2 ** 32);
  }

  /** Returns an integer from 0 up to a bound, exclusive. */
  below(end: number): number {
    return Math.floor(this.#next() * end);
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return randomItem(this.#next, choices);
  }

  /** Returns any finite number. All bit patterns are equally likely. */
  finiteNumber(): number {
    const view = new DataView(new ArrayBuffer(8));
    do {
      view.setUint32(0, this.uint32());
      view.setUint32(4, this.uint32());
    } while (!Number.isFinite(view.getFloat64(0)));
    return view.getFloat64(0);
  }

  /** Returns a well-formed string from all ranges of Unicode, including control characters. */
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
