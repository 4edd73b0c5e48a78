/**
 * Decodes row groups on another thread, so that replaying sealed history does not delay other
 * clients. If no thread can be started, the main thread decodes.
 */
import { Buffer } from "node:buffer";
import { SegmentError } from "../storage/segment_error.ts";
import {
  ThreadPool,
  type ThreadPoolOptions,
  ThreadUnavailableError,
} from "../../threads/thread_pool.ts";
import { decodeLines, type DecodeRequest } from "./row_group_decoder.ts";

/** Idle time after which the thread exits. */
const DECODE_THREAD_IDLE_MS = 60_000;

/** Decodes row groups. Calls do not overlap. */
export interface RowGroupDecoder {
  /** Returns the stored lines; `request.bytes` may be transferred. @throws {SegmentError} */
  decode(request: DecodeRequest): Promise<Buffer>;
  close(): Promise<void>;
}

/** Decodes on the calling thread. */
export const INLINE_DECODER: RowGroupDecoder = {
  decode: decodeLines,
  close: () => Promise.resolve(),
};

/** Decodes on a worker thread, which starts on demand. @param options for tests. */
export function decodeThread(options: Partial<ThreadPoolOptions> = {}): RowGroupDecoder {
  const module = new URL("./decode_worker.ts", import.meta.url);
  const bounds = { threadsMax: 1, idleMs: DECODE_THREAD_IDLE_MS };
  const threads = new ThreadPool<DecodeRequest, ArrayBuffer>(module, { ...bounds, ...options });
  return {
    async decode(request) {
      try {
        return Buffer.from(await threads.request(request, [request.bytes]));
      } catch (cause) {
        if (cause instanceof ThreadUnavailableError) return await decodeLines(request);
        throw new SegmentError((cause as Error).message, { cause });
      }
    },
    close: () => threads.close(),
  };
}
