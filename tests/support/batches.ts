/** Builds batches as a connector submits them. */

/** A batch of one or more small events. */
export function batch(batchId: string, eventCount = 1, payload: unknown = { a: 1 }): unknown {
  const events = Array.from({ length: eventCount }, (_, index) => ({
    stream: "orders",
    record_key: `order-${index}`,
    kind: "upserted",
    payload,
  }));
  return { batch_id: batchId, source: "shop", events };
}
