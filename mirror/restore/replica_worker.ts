/** The worker thread of `replication.ts`: verifies messages and groups them into commits. */
import { workerData } from "node:worker_threads";
import { CommandError } from "../../src/commands/exit.ts";
import { answerRequests } from "../../src/threads/thread_pool.ts";
import { foreignMessage, messageFacts } from "../nats/stream.ts";
import { type MessageBlock, messagesIn } from "./message_block.ts";
import { type LogEnd, Replica, StreamFaultError, type VerifiedCommit } from "./replica.ts";

/** The response to a block. */
export interface VerifiedBlock {
  /** The block's memory. */
  bytes: ArrayBuffer;
  commits: VerifiedCommit[];
  /** Number of events in the batch whose last event has not arrived. */
  openEvents: number;
  /** Why a message was refused; null if all were verified. */
  refusal: string | null;
}

const { stream, end } = workerData as { stream: string; end: LogEnd };
const replica = new Replica(end);

answerRequests<MessageBlock, VerifiedBlock>((block) => {
  const commits: VerifiedCommit[] = [];
  const refusal = verify(block, commits);
  if (replica.hasWhole && (block.isFlushed || refusal !== null)) commits.push(replica.take());
  const { bytes } = block;
  const response = { bytes, commits, openEvents: replica.openEvents, refusal };
  return { response, transfer: [bytes, ...commits.map(({ lines }) => lines)] };
});

function verify(block: MessageBlock, commits: VerifiedCommit[]): string | null {
  try {
    for (const { seq, headers, data } of messagesIn(block)) {
      const facts = messageFacts(headers);
      if (facts === null) throw foreignMessage(stream, seq);
      replica.add(facts, data);
      if (replica.isFull) commits.push(replica.take());
    }
    return null;
  } catch (error) {
    if (error instanceof StreamFaultError || error instanceof CommandError) return error.message;
    throw error;
  }
}
