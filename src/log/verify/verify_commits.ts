/**
 * Checks a tail or pending file commit by commit: the frame of one first, then its events. Nothing
 * of a commit is looked at before its frame is known to be right.
 */
import { Buffer } from "node:buffer";
import type { Commit } from "../wal/commit_frame.ts";
import { CommitReader, type WholeCommit } from "../wal/commit_reader.ts";
import type { HistoryCheck } from "./history_check.ts";
import { hashAhead, type HashedLines } from "./line_hashing.ts";
import { type IdRange, parsePendingName } from "../storage/file_names.ts";
import { remnantFault } from "../wal/remnant.ts";
import type { ListedFile } from "./verify_inventory.ts";
import { type FailureCode, type FailureDetail, VerifyFailure } from "./verify_failure.ts";

/**
 * Feeds a pending file to `history`, which has taken in all that comes before it.
 * @param head chain head before the file.
 * @returns the chain head after it.
 * @throws {VerifyFailure} the first check that does not hold.
 */
export async function verifyPending(
  listed: ListedFile,
  head: string,
  history: HistoryCheck,
): Promise<string> {
  const { path } = listed;
  history.enterFile(path, "pending_invalid");
  const range = parsePendingName(path.slice(path.lastIndexOf("/") + 1));
  if (range === null) {
    throw new VerifyFailure("pending_invalid", "not the name of a rotated tail", { path });
  }
  const check = new CommitsCheck({ listed, code: "pending_invalid", head, history, range });
  const fault = await check.run();
  if (fault !== null) throw check.failureOf(fault);
  check.finish();
  return check.head;
}

export interface VerifiedTail {
  /** All commits before are right. */
  rightBytes: number;
  /** Whether a commit follows that was cut off or is being written. */
  isRemnant: boolean;
}

/**
 * Feeds the tail to `history`, as `verifyPending()` does a pending file. @throws {VerifyFailure}
 */
export async function verifyTail(
  listed: ListedFile,
  head: string,
  history: HistoryCheck,
): Promise<VerifiedTail> {
  history.enterFile(listed.path, "tail_invalid");
  const check = new CommitsCheck({ listed, code: "tail_invalid", head, history });
  let fault = await check.run();
  if (fault !== null && !(await isRemnant(listed, check.rightBytes))) {
    // A writer may have undone a commit and written the next one while its place was read.
    fault = await check.run();
    if (fault !== null && !(await isRemnant(listed, check.rightBytes))) {
      throw check.failureOf(fault);
    }
  }
  return { rightBytes: check.rightBytes, isRemnant: fault !== null };
}

async function isRemnant({ file, sizeBytes }: ListedFile, rightBytes: number): Promise<boolean> {
  return await remnantFault(file, sizeBytes, rightBytes) === null;
}

interface CommitsCheckOptions {
  listed: ListedFile;
  /** How the report calls a fault in the form of the file. */
  code: Extract<FailureCode, "pending_invalid" | "tail_invalid">;
  /** Chain head before the file. */
  head: string;
  history: HistoryCheck;
  /** What the name of the file says of its events, if anything. */
  range?: IdRange;
}

class CommitsCheck {
  readonly #options: CommitsCheckOptions;
  #rightBytes = 0;
  #head: string;
  #lastEventId: string | null = null;

  constructor(options: CommitsCheckOptions) {
    this.#options = options;
    this.#head = options.head;
  }

  /** All commits before are right. */
  get rightBytes(): number {
    return this.#rightBytes;
  }

  /** Chain head after these. */
  get head(): string {
    return this.#head;
  }

  /**
   * Checks the commits from `rightBytes` on.
   * @returns why the frame of the first that is not right is not; null at the end of the file.
   * @throws {VerifyFailure} what a right frame holds is not right: that was never written in part.
   */
  async run(): Promise<string | null> {
    const { file, sizeBytes } = this.#options.listed;
    const reader = new CommitReader(file, this.#rightBytes, sizeBytes);
    for await (const next of this.#commits(reader)) {
      const { commit } = next;
      this.#enter(commit);
      this.#options.history.addCommit(commit, next);
      this.#head = commit.head;
      this.#lastEventId = commit.batches.at(-1)?.last_event_id ?? this.#lastEventId;
      this.#rightBytes = next.endBytes;
    }
    return reader.fault;
  }

  #commits(reader: CommitReader): AsyncIterable<WholeCommit & HashedLines> {
    const { hashing } = this.#options.history;
    return hashing === null ? unhashed(reader) : hashAhead(inOwnMemory(reader), hashing);
  }

  /** Checks that the file has ended with what its name says. @throws {VerifyFailure} */
  finish(): void {
    this.#checkName("last", this.#lastEventId);
  }

  failureOf(fault: string): VerifyFailure {
    return this.#failure(`at byte ${this.#rightBytes}: ${fault}`);
  }

  /** Checks that a commit can be the next one. */
  #enter(commit: Commit): void {
    const first = commit.batches[0]?.first_event_id;
    if (this.#lastEventId === null && first !== undefined) this.#checkName("first", first);
    if (first === undefined) this.#checkHead("of a commit without events", this.#head, commit.head);
  }

  #checkHead(which: string, expected: string, found: string): void {
    if (expected === found) return;
    const what = `at byte ${this.#rightBytes}: the chain head ${which}`;
    // Where the chain is followed, the head before is known to be right.
    const code = this.#options.history.chain ? "chain_head_mismatch" : this.#options.code;
    throw this.#failure(what, { expected, found }, code);
  }

  #checkName(which: "first" | "last", found: string | null): void {
    const expected = this.#options.range?.[`${which}EventId`];
    if (expected === undefined || expected === found) return;
    throw this.#failure(`the ${which} event that its name tells`, { expected, found: `${found}` });
  }

  #failure(
    what: string,
    values: Pick<FailureDetail, "expected" | "found"> = {},
    code: FailureCode = this.#options.code,
  ): VerifyFailure {
    const { path } = this.#options.listed;
    return new VerifyFailure(code, what, { path, eventId: this.#lastEventId, ...values });
  }
}

async function* unhashed(reader: CommitReader): AsyncGenerator<WholeCommit & HashedLines, void> {
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    yield { ...next, areHashed: false };
  }
}

async function* inOwnMemory(reader: CommitReader): AsyncGenerator<WholeCommit, void> {
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    const lines = Buffer.allocUnsafeSlow(next.lines.length);
    next.lines.copy(lines);
    yield { ...next, lines };
  }
}
