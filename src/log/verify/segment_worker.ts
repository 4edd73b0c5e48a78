/** The thread of `segment_threads.ts`. */
import { answerRequests } from "../../threads/thread_pool.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { checkSegment } from "./segment_verifier.ts";

export interface SegmentRequest {
  /** The log folder. */
  folder: string;
  /** Whether to recompute all hashes. */
  chain: boolean;
  expected: ExpectedSegment;
}

/** See `checkSegment()`. */
export type SegmentResponse = BigUint64Array | null;

answerRequests<SegmentRequest, SegmentResponse>(async ({ folder, chain, expected }) => {
  const response = await checkSegment(fileStorage(folder), expected, chain);
  return { response, transfer: response === null ? [] : [response.buffer as ArrayBuffer] };
});
