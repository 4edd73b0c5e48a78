/** The worker thread of `row_group_decoder.ts`. */
import { answerRequests } from "../../threads/thread_pool.ts";
import { decodeLines, type DecodeRequest } from "./row_group_decoder.ts";

answerRequests<DecodeRequest, ArrayBuffer>(async (request) => {
  const lines = await decodeLines(request);
  // The lines may be followed by unused memory.
  const buffer = lines.buffer as ArrayBuffer;
  const response = buffer.byteLength === lines.length ? buffer : buffer.slice(0, lines.length);
  return { response, transfer: [response] };
});
