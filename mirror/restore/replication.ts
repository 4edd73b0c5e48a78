/**
 * Appends messages to a log. Another thread verifies them, so that restoring uses two cores: while
 * one block of messages is committed, the next ones are verified and read.
 */
import { Buffer } from "node:buffer";
import type { Msg } from "@nats-io/transport-node";
import { operationalError } from "../../src/commands/exit.ts";
import type { Log } from "../../src/log/log.ts";
import { sumOf } from "../../src/sum.ts";
import { ThreadPool } from "../../src/threads/thread_pool.ts";
import { BlockBuilder, type MessageBlock } from "./message_block.ts";
import type { VerifiedBlock } from "./replica_worker.ts";

/** Maximum number of blocks in progress. Enough to verify while a commit waits for the disk. */
const BLOCKS_MAX = 8;

export class Replication {
  readonly #log: Log;
  readonly #onHead: (head: string) => void;
  readonly #thread: ThreadPool<MessageBlock, VerifiedBlock>;
  readonly #block = new BlockBuilder();
  /** The commits of the blocks in progress, in order. Each waits for the previous one. */
  readonly #commits = [Promise.resolve()];
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

  /** Whether enough messages were added to send them. */
  get isFull(): boolean {
    return this.#block.isFull;
  }

  add(seq: number, message: Msg): void {
    this.#block.add(seq, message);
  }

  /**
   * Sends the added messages to the thread. Waits until there is room for another block.
   * @throws {CommandError} if an earlier event was altered or does not continue the log.
   */
  async send(options: { isFlushed: boolean }): Promise<void> {
    const block = this.#block.take(options);
    const verified = this.#thread.request(block, [block.bytes.buffer]);
    const committed = this.#commits.at(-1)!.then(async () => await this.#commit(await verified));
    // A later call or `finish()` reports these failures.
    verified.catch(() => {});
    committed.catch(() => {});
    this.#commits.push(committed);
    if (this.#commits.length > BLOCKS_MAX) await this.#commits.shift();
  }

  /** Commits all complete batches and ends the thread. @throws like `send()`. */
  async finish(): Promise<void> {
    try {
      await this.send({ isFlushed: true });
      await this.#commits.at(-1);
    } finally {
      await this.#thread.close();
    }
  }

  async #commit({ bytes, commits, openEvents, refusal }: VerifiedBlock): Promise<void> {
    this.#block.reuse(bytes);
    for (const { batches, heads, lines } of commits) {
      await this.#log.replicate({ batches, head: heads.at(-1)! }, Buffer.from(lines));
      this.events += sumOf(batches, ({ events }) => events);
      heads.forEach(this.#onHead);
    }
    this.openEvents = openEvents;
    if (refusal !== null) throw operationalError(refusal);
  }
}
