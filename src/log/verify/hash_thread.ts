/** Recomputes hashes on another thread. Memory moves there and back, nothing is copied. */
import { Buffer } from "node:buffer";
import { Worker } from "node:worker_threads";
import type { HashAnswer, HashQuestion } from "./hash_worker.ts";
import type { HashedLines, LineHashing } from "./line_hashing.ts";

/** A log with less than this is verified before a thread that helps would have started. */
export const HASH_THREAD_LOG_BYTES_MIN: number = 16 * 1024 * 1024;

/**
 * Starts a thread for a log of so many bytes.
 * @returns null for a small one, and where a thread cannot be started: with narrow permissions a
 *   runtime may not read its module. Then hashes are recomputed by whoever takes the lines.
 */
export function startHashThread(logBytes: number): LineHashing | null {
  if (logBytes < HASH_THREAD_LOG_BYTES_MIN) return null;
  try {
    return new HashThread(new Worker(new URL("./hash_worker.ts", import.meta.url)));
  } catch {
    return null;
  }
}

type Waiting = PromiseWithResolvers<HashedLines>;

class HashThread implements LineHashing {
  readonly #worker: Worker;
  /** Those who wait for an answer, in the order of their questions. */
  readonly #waiting: Waiting[] = [];
  #failure: Error | null = null;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", ({ memory, bytes, areHashed }: HashAnswer) => {
      this.#waiting.shift()!.resolve({ lines: Buffer.from(memory, 0, bytes), areHashed });
    });
    worker.on("error", (error) => this.#fail(error as Error));
    worker.on("exit", () => this.#fail(new Error("the thread that recomputes hashes has ended")));
  }

  check(lines: Buffer): Promise<HashedLines> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const waiting: Waiting = Promise.withResolvers();
    this.#waiting.push(waiting);
    const memory = lines.buffer as ArrayBuffer;
    const question: HashQuestion = { memory, bytes: lines.length };
    this.#worker.postMessage(question, [memory]);
    return waiting.promise;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}
