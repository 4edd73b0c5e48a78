/**
 * Values by the identity of a batch, `(source, batch_id)`. A map for each source: to join the two
 * to one key costs more than to look twice.
 */
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

  /** Whether any batch of that source is in. */
  hasSource(source: string): boolean {
    return this.#bySource.has(source);
  }
}
