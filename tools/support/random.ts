/** Pseudo-random numbers from a seed, so that a failing test can be run again. */
import process from "node:process";

/** Numbers in [0, 1), by xorshift32. */
export type Random = () => number;

/**
 * A seed for this run: that of the environment variable SEED, or a new one. To be put in a test's
 * name.
 */
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
  // Seeds that differ little give like numbers at first.
  for (let i = 0; i < 16; i++) next();
  return next;
}

/** An integer from `min` to `max`, both possible. */
export function randomInteger(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1));
}

export function randomItem<T>(random: Random, items: readonly T[]): T {
  return items[randomInteger(random, 0, items.length - 1)]!;
}
