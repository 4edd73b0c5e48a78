/** Counts of everything that a soak does, for its output. */

const NAMES = [
  "batches",
  "events",
  "payloadBytes",
  "duplicates",
  "refusals",
  "aborts",
  "retirements",
  "pages",
  "lookups",
  "listings",
  "follows",
  "followed",
  "checked",
  "audited",
  "starts",
  "kills",
  "stops",
  "seals",
  "verifies",
  "freezes",
  "intrusions",
  "rounds",
  "states",
] as const;

/** The names of the counts. `checked` counts observations, and `audited` counts events. */
export type Counted = typeof NAMES[number];

export class Tally {
  readonly #counts = new Map<Counted, number>(NAMES.map((name) => [name, 0]));

  add(name: Counted, count = 1): void {
    this.#counts.set(name, this.of(name) + count);
  }

  of(name: Counted): number {
    return this.#counts.get(name)!;
  }

  /** Formats all counts except bytes on one line. */
  toString(): string {
    const named = NAMES.filter((name) => name !== "payloadBytes");
    return named.map((name) => `${this.of(name)} ${name}`).join(", ");
  }
}
