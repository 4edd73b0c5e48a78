/** The worker thread of `batch_preparer.ts`: prepares a batch from each body it receives. */
import { prepareBatch } from "../event/batch_reader.ts";
import type { PreparedBatch } from "../event/types.ts";
import { freeOwnMemory } from "../free_memory.ts";
import { type Answer, answerRequests } from "../threads/thread_pool.ts";

answerRequests((body: ArrayBuffer): Answer<PreparedBatch> => {
  const bytes = new Uint8Array(body);
  try {
    const batch = prepareBatch(bytes);
    return { response: batch, transfer: memoryOf(batch) };
  } finally {
    freeOwnMemory(bytes);
  }
});

/** Returns the buffers that can be transferred because no other view shares them. */
function memoryOf({ events: { lines, envelopes, offsets } }: PreparedBatch): ArrayBuffer[] {
  return [lines, envelopes, offsets]
    .filter(({ byteLength, buffer }) => byteLength === buffer.byteLength)
    .map(({ buffer }) => buffer as ArrayBuffer);
}
