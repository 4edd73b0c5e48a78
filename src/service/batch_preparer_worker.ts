/** The worker thread of `batch_preparer.ts`: prepares a batch from each body it receives. */
import { ApiError, type ErrorCode } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch_reader.ts";
import type { PreparedBatch } from "../event/types.ts";
import { type Answer, answerRequests } from "../threads/thread_pool.ts";

/** The batch, or why the body was rejected. */
export type PreparedBody =
  | { batch: PreparedBatch }
  | { refusal: { code: ErrorCode; message: string; context: ApiError["context"] } };

answerRequests((body: ArrayBuffer): Answer<PreparedBody> => {
  try {
    const batch = prepareBatch(new Uint8Array(body));
    return { response: { batch }, transfer: memoryOf(batch) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { code, message, context } = error;
    return { response: { refusal: { code, message, context } } };
  }
});

/** Returns the buffers that can be transferred because no other view shares them. */
function memoryOf({ events: { lines, envelopes, offsets } }: PreparedBatch): ArrayBuffer[] {
  return [lines, envelopes, offsets]
    .filter(({ byteLength, buffer }) => byteLength === buffer.byteLength)
    .map(({ buffer }) => buffer as ArrayBuffer);
}
