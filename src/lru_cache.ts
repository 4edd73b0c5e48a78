/**
 * The one cache of this program: values by key, bounded by their total weight, the least recently
 * used dropped first. Concurrent loads of one key share one read.
 *
 * Invariant: the weights held never exceed the limit, except while the newest value alone does.
 */
import { assert } from "./assert.ts";

interface Held<Value> {
  value: Value;
  weight: number;
}

export class LruCache<Value> {
  readonly #limit: number;
  readonly #weigh: (value: Value) => number;
  readonly #onDrop: (value: Value) => void;
  /** From the least to the most recently used. */
  readonly #held = new Map<string, Held<Value>>();
  readonly #loading = new Map<string, Promise<Value>>();
  #weight = 0;

  /**
   * @param limit the total weight to hold.
   * @param weigh the weight of a value: 1 to count values, or its size in bytes.
   * @param onDrop told of each value that leaves the cache.
   */
  constructor(
    limit: number,
    weigh: (value: Value) => number = () => 1,
    onDrop: (value: Value) => void = () => {},
  ) {
    this.#limit = limit;
    this.#weigh = weigh;
    this.#onDrop = onDrop;
  }

  /** The total weight held. */
  get weight(): number {
    return this.#weight;
  }

  /** The value of a key, which becomes the most recently used one. */
  get(key: string): Value | undefined {
    const held = this.#held.get(key);
    if (held === undefined) return undefined;
    this.#held.delete(key);
    this.#held.set(key, held);
    return held.value;
  }

  set(key: string, value: Value): void {
    this.delete(key);
    const weight = this.#weigh(value);
    assert(weight >= 0, "a cached value has a weight");
    this.#held.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#held.keys()) {
      if (this.#weight <= this.#limit || oldest === key) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#held.delete(key);
    this.#weight -= held.weight;
    this.#onDrop(held.value);
  }

  clear(): void {
    for (const key of [...this.#held.keys()]) this.delete(key);
  }

  /**
   * The value of a key, loaded if the cache does not hold it. A failed load is forgotten: all who
   * wait for it get its error, and the next caller tries again.
   */
  async load(key: string, load: () => Promise<Value>): Promise<Value> {
    const known = this.get(key);
    if (known !== undefined) return known;
    const shared = this.#loading.get(key);
    if (shared !== undefined) return await shared;
    const loading = load();
    this.#loading.set(key, loading);
    try {
      const value = await loading;
      this.set(key, value);
      return value;
    } finally {
      this.#loading.delete(key);
    }
  }
}
