/** The worker thread of `batch_preparer.ts`: prepares a batch from each body it receives. */
import { prepareBatch } from "../event/batch_reader.ts";
import type { PreparedBatch } from "../event/types.ts";
import { freeOwnMemory } from "../free_memory.ts";
import { type Answer, answerRequests } from "../threads/thread_pool.ts";

answerRequests((body: ArrayBuffer): Answer<PreparedBatch> => {
  const bytes = new Uint8Array(body);
  try {
    const batch = prepareBatch(bytes);
    const { lines, envelopes, offsets } = batch.events;
    // Buffers can be transferred if no other view shares them.
    const transfer = [lines, envelopes, offsets]
      .filter(({ byteLength, buffer }) => byteLength === buffer.byteLength)
      .map(({ buffer }) => buffer as ArrayBuffer);
    return { response: batch, transfer };
  } finally {
    freeOwnMemory(bytes);
  }
});
