/** A promise that a test resolves explicitly. */
export class Gate<T = void> {
  readonly #resolvers: PromiseWithResolvers<T> = Promise.withResolvers<T>();

  /** Resolves once the gate is opened. */
  get opened(): Promise<T> {
    return this.#resolvers.promise;
  }

  open(value: T): void {
    this.#resolvers.resolve(value);
  }
}
