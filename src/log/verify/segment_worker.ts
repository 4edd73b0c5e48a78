/** The worker thread of `verify.ts`: verifies a segment. */
import { answerRequests } from "../../threads/thread_pool.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { type CheckedSegment, checkSegment } from "./segment_verifier.ts";

export interface SegmentRequest {
  folder: string;
  chain: boolean;
  expected: ExpectedSegment;
}

answerRequests<SegmentRequest, CheckedSegment>(async ({ folder, chain, expected }) => ({
  response: await checkSegment(fileStorage(folder), expected, chain),
}));
