/** Values that are known in most cases and read from a file in the others. */

/** A value, or a promise of it if it must be read from a file. */
export type Maybe<Value> = Value | Promise<Value>;

/** Calls `next` with a value, without a promise or a turn of the event loop if it is known. */
export function whenKnown<Value, Next>(
  value: Maybe<Value>,
  next: (value: Value) => Maybe<Next>,
): Maybe<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}
