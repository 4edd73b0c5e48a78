/** Values by batch identity. A map for each source: a joined key costs more than two lookups. */
export class IdentityMap<Value> {
  readonly #bySource = new Map<string, Map<string, Value>>();

  get(source: string, batchId: string): Value | undefined {
    return this.#bySource.get(source)?.get(batchId);
  }

  set(source: string, batchId: string, value: Value): void {
    const batches = this.#bySource.get(source);
    if (batches !== undefined) batches.set(batchId, value);
    else this.#bySource.set(source, new Map([[batchId, value]]));
  }

  hasSource(source: string): boolean {
    return this.#bySource.has(source);
  }
}
