/**
 * Where a JSON parser stands: the open containers, with the index reached in each array and the
 * member names met in each object. A flat stack, because a hostile body can nest 16 million deep.
 */
import { assert } from "../../assert.ts";

/** Objects with more members get a set of their names; comparing fewer costs less than that. */
const COMPARED_NAMES_MAX = 16;
/** Steps of a path that are reported. */
const PATH_STEPS_MAX = 16;

export class JsonNesting {
  /** A level is `2 * index` for an array, `2 * start in #names + 1` for an object. */
  #levels = new Uint32Array(64);
  #depth = 0;
  /** Names of all open objects, outermost first. */
  readonly #names: string[] = [];
  /** By depth, the names of open objects that have many. */
  readonly #nameSets = new Map<number, Set<string>>();

  /** Open containers. */
  get depth(): number {
    return this.#depth;
  }

  /** Whether the innermost container is an object. */
  get isInObject(): boolean {
    return this.#depth > 0 && isObject(this.#top());
  }

  open(kind: "array" | "object"): void {
    if (this.#depth === this.#levels.length) {
      const larger = new Uint32Array(this.#levels.length * 2);
      larger.set(this.#levels);
      this.#levels = larger;
    }
    this.#levels[this.#depth] = kind === "object" ? this.#names.length * 2 + 1 : 0;
    this.#depth++;
  }

  close(): void {
    const level = this.#top();
    if (isObject(level)) {
      this.#names.length = startOf(level);
      this.#nameSets.delete(this.#depth);
    }
    this.#depth--;
  }

  /** Moves on to the next item of the innermost container, an array. */
  nextItem(): void {
    assert(!isObject(this.#top()), "only arrays have items");
    this.#levels[this.#depth - 1] = this.#top() + 2;
  }

  /**
   * Moves on to a member of the innermost container, an object. False when it has one of that name.
   */
  addName(name: string): boolean {
    const level = this.#top();
    assert(isObject(level), "only objects have members");
    if (this.#hasName(name, startOf(level))) return false;
    this.#names.push(name);
    return true;
  }

  /** The outermost steps to the current member or item. */
  path(): (string | number)[] {
    const steps: (string | number)[] = [];
    for (let at = 0; at < this.#depth && steps.length < PATH_STEPS_MAX; at++) {
      const level = this.#levels[at]!;
      const name = isObject(level) ? this.#lastName(at) : level / 2;
      if (name !== undefined) steps.push(name);
    }
    return steps;
  }

  #top(): number {
    assert(this.#depth > 0, "a container is open");
    return this.#levels[this.#depth - 1]!;
  }

  #hasName(name: string, start: number): boolean {
    if (this.#names.length - start < COMPARED_NAMES_MAX) return this.#names.includes(name, start);
    let names = this.#nameSets.get(this.#depth);
    if (names === undefined) {
      names = new Set(this.#names.slice(start));
      this.#nameSets.set(this.#depth, names);
    }
    const size = names.size;
    return names.add(name).size === size;
  }

  /** The current member of an open object; undefined before its first. */
  #lastName(at: number): string | undefined {
    let inner = at + 1;
    while (inner < this.#depth && !isObject(this.#levels[inner]!)) inner++;
    const end = inner < this.#depth ? startOf(this.#levels[inner]!) : this.#names.length;
    return end > startOf(this.#levels[at]!) ? this.#names[end - 1] : undefined;
  }
}

function isObject(level: number): boolean {
  return level % 2 === 1;
}

function startOf(level: number): number {
  return (level - 1) / 2;
}
