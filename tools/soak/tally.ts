/** Counts of everything that a soak does, for its output. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string, count = 1): void {
    this.#counts.set(name, this.of(name) + count);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Formats all counts except bytes on one line. */
  toString(): string {
    const named = [...this.#counts].filter(([name]) => name !== "payloadBytes");
    return named.map(([name, count]) => `${count} ${name}`).join(", ");
  }
}
