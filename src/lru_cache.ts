/**
 * An LRU cache with a limit on total weight. Concurrent loads of a key are shared.
 *
 * Invariant: the total weight exceeds the limit only if the newest value alone does.
 */
import { assert } from "./assert.ts";

export class LruCache<Value> {
  readonly #limit: number;
  readonly #weigh: (value: Value) => number;
  readonly #onDrop: (value: Value) => void;
  /** In order of use, least recent first. */
  readonly #held = new Map<string, { value: Value; weight: number }>();
  readonly #loading = new Map<string, Promise<Value>>();
  #weight = 0;

  /** @param onDrop called for each evicted, replaced or deleted value. */
  constructor(
    limit: number,
    weigh: (value: Value) => number = () => 1,
    onDrop: (value: Value) => void = () => {},
  ) {
    this.#limit = limit;
    this.#weigh = weigh;
    this.#onDrop = onDrop;
  }

  /** Returns a cached value and marks it as most recently used. */
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
    assert(weight >= 0, "a cached value must have a non-negative weight");
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

  /** Returns the value for a key, and loads it on a miss. A failed load is not cached. */
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
