/**
 * Appends messages to a log. Another thread verifies them, so that restoring uses two cores: while
 * one block of messages is committed, later blocks are verified and read.
 */
import { Buffer } from "node:buffer";
import type { Msg } from "@nats-io/transport-node";
import { operationalError } from "../../src/commands/exit.ts";
import type { Log } from "../../src/log/log.ts";
import { sumOf } from "../../src/sum.ts";
import { ThreadPool } from "../../src/threads/thread_pool.ts";
import { BlockBuilder, type MessageBlock } from "./message_block.ts";
import type { VerifiedBlock } from "./replica_worker.ts";

/** `send()` waits while more bytes are in progress. They keep the thread busy during an fsync. */
const IN_PROGRESS_BYTES_MAX = 8 * 1024 * 1024;

export class Replication {
  readonly #log: Log;
  readonly #onHead: (head: string) => void;
  readonly #thread: ThreadPool<MessageBlock, VerifiedBlock>;
  readonly #block = new BlockBuilder();
  /** The commits for the blocks in progress, oldest first. */
  readonly #commits: Promise<void>[] = [];
  /** The commit for the last block. Each commit waits for the previous one. */
  #last = Promise.resolve();
  #inProgressBytes = 0;
  /** Number of events committed. */
  events = 0;
  /** Number of events in the batch whose last event has not arrived. */
  openEvents = 0;

  /** @param onHead called with the chain head after each batch. */
  constructor(log: Log, stream: string, onHead: (head: string) => void) {
    this.#log = log;
    this.#onHead = onHead;
    const end = { head: log.head, lastEventId: log.snapshot.frontier };
    const module = new URL("./replica_worker.ts", import.meta.url);
    this.#thread = new ThreadPool(module, { threadsMax: 1, workerData: { stream, end } });
  }

  /** Whether the added messages fill a block, which should then be sent. */
  get isFull(): boolean {
    return this.#block.isFull;
  }

  add(seq: number, message: Msg, body?: Uint8Array): void {
    this.#block.add(seq, message, body);
  }

  /**
   * Sends the added messages to the thread. Waits while too many bytes are in progress.
   * @throws {CommandError} if an earlier event was altered or does not continue the log.
   */
  async send(options: { isFlushed: boolean }): Promise<void> {
    const block = this.#block.take(options);
    this.#inProgressBytes += block.bytes.byteLength;
    const verified = this.#thread.request(block, [block.bytes, block.index]);
    this.#last = this.#last.then(async () => {
      await this.#commit(await verified);
      this.#commits.shift();
    });
    // A later call or `finish()` reports these failures.
    verified.catch(() => {});
    this.#last.catch(() => {});
    this.#commits.push(this.#last);
    while (this.#inProgressBytes > IN_PROGRESS_BYTES_MAX) await this.#commits[0];
  }

  /** Commits all complete batches and ends the thread. @throws like `send()`. */
  async finish(): Promise<void> {
    try {
      await this.send({ isFlushed: true });
      await this.#last;
    } finally {
      await this.#thread.close();
    }
  }

  async #commit({ bytes, commits, openEvents, refusal }: VerifiedBlock): Promise<void> {
    this.#inProgressBytes -= bytes.byteLength;
    this.#block.reuse(bytes);
    for (const { batches, heads, lines } of commits) {
      await this.#log.replicate({ batches, head: heads.at(-1)! }, Buffer.from(lines));
      // Freed now: the collector would take a third of a core to free such memory.
      lines.transfer(0);
      this.events += sumOf(batches, ({ events }) => events);
      heads.forEach(this.#onHead);
    }
    this.openEvents = openEvents;
    if (refusal !== null) throw operationalError(refusal);
  }
}
