/** Counters for `serve` since startup, printed as one line of JSON. */
import process from "node:process";
import type { HttpResponse } from "../http/message.ts";
import type { Storage } from "../log/storage/storage.ts";

/** Number of recent syncs from which percentiles are computed. */
const SYNCS_KEPT = 1024;

export class Counters {
  readonly #refusals: Record<string, number> = {};
  #syncs = 0;
  readonly #syncsMs: number[] = [];

  /** Counts a response that is an error document by its code. */
  readonly addResponse = ({ status, body }: HttpResponse): void => {
    if (status < 400 || typeof body !== "string") return;
    // The code comes first. Parsing a document of many errors would take long.
    const [, error = "other"] = /^\{"error":"(\w+)"/.exec(body) ?? [];
    this.#refusals[error] = (this.#refusals[error] ?? 0) + 1;
  };

  /** Wraps a storage to time the syncs of its files. */
  ofSyncs(storage: Storage): Storage {
    const open: Storage["open"] = async (path, openMode) => {
      const file = await storage.open(path, openMode);
      const sync = file.sync.bind(file);
      file.sync = async (mode) => {
        const startedAtMs = performance.now();
        await sync(mode);
        const tookUs = Math.round((performance.now() - startedAtMs) * 1000);
        this.#syncsMs[this.#syncs++ % SYNCS_KEPT] = tookUs / 1000;
      };
      return file;
    };
    return { ...storage, open };
  }

  /** @param sizes additional members for the line. */
  line(sizes: object): string {
    const sorted = this.#syncsMs.toSorted((a, b) => a - b);
    const percentile = (share: number) => sorted[Math.floor(share * sorted.length)] ?? null;
    return JSON.stringify({
      at: new Date().toISOString(),
      refusals: this.#refusals,
      fsyncs: this.#syncs,
      fsync_p50_ms: percentile(0.5),
      fsync_p99_ms: percentile(0.99),
      ...sizes,
      memory_bytes: process.memoryUsage.rss(),
    });
  }
}
