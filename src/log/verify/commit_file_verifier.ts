/** Checks a tail or pending file commit by commit: first the frame of each, then its events. */
import type { Commit } from "../wal/commit_frame.ts";
import { CommitReader } from "../wal/commit_reader.ts";
import { remnantFault } from "../wal/remnant.ts";
import { type IdRange, parsePendingName } from "../storage/file_names.ts";
import { type FailureCode, type FailureDetail, VerifyFailure } from "./failure.ts";
import type { HistoryCheck } from "./history_check.ts";
import type { ListedFile } from "./inventory.ts";

/**
 * Checks a pending file with `history`, which has checked everything before it.
 * @param head the chain head before it; null when an earlier file is damaged.
 * @returns the chain head after it; null when unknown.
 * @throws {VerifyFailure} the first check that does not hold.
 */
export async function verifyPending(
  listed: ListedFile,
  head: string | null,
  history: HistoryCheck,
): Promise<string | null> {
  const { path } = listed;
  const range = parsePendingName(path.slice(path.lastIndexOf("/") + 1));
  if (range === null) {
    throw new VerifyFailure("pending_invalid", "not the name of a rotated tail", { path });
  }
  const verifier = new CommitFileVerifier(listed, "pending_invalid", head, history, range);
  const fault = await verifier.run();
  if (fault !== null) throw verifier.failureAt(fault);
  verifier.finish();
  return verifier.head;
}

export interface VerifiedTail {
  /** Whether it holds no complete commit. */
  isEmpty: boolean;
  /** Whether it ends with an unfinished commit: torn, or being written. */
  isRemnant: boolean;
}

/** Checks the tail with `history`, as `verifyPending()` does a pending file. */
export async function verifyTail(
  listed: ListedFile,
  head: string | null,
  history: HistoryCheck,
): Promise<VerifiedTail> {
  const verifier = new CommitFileVerifier(listed, "tail_invalid", head, history);
  let fault = await verifier.run();
  if (fault !== null && !(await isRemnant(listed, verifier.rightBytes))) {
    // A writer may have undone a commit and written another one while it was read.
    fault = await verifier.run();
    if (fault !== null && !(await isRemnant(listed, verifier.rightBytes))) {
      throw verifier.failureAt(fault);
    }
  }
  return { isEmpty: verifier.rightBytes === 0, isRemnant: fault !== null };
}

async function isRemnant({ file, sizeBytes }: ListedFile, rightBytes: number): Promise<boolean> {
  return await remnantFault(file, sizeBytes, rightBytes) === null;
}

class CommitFileVerifier {
  readonly #listed: ListedFile;
  /** The failure code of a malformed file. */
  readonly #code: Extract<FailureCode, "pending_invalid" | "tail_invalid">;
  readonly #history: HistoryCheck;
  /** The range in the name of a pending file. */
  readonly #range: IdRange | undefined;
  #lastEventId: string | null = null;
  /** Size of the leading commits that are right. */
  rightBytes = 0;
  /** The chain head after them; null while unknown. */
  head: string | null;

  constructor(
    listed: ListedFile,
    code: "pending_invalid" | "tail_invalid",
    head: string | null,
    history: HistoryCheck,
    range?: IdRange,
  ) {
    this.#listed = listed;
    this.#code = code;
    this.#history = history;
    this.#range = range;
    this.head = head;
    history.enterFile(listed.path, code);
  }

  /**
   * Checks the commits from `rightBytes` on.
   * @returns why the first malformed frame is malformed; null at the end of the file.
   * @throws {VerifyFailure} the content of a right frame is wrong, which no torn write explains.
   */
  async run(): Promise<string | null> {
    const { file, sizeBytes } = this.#listed;
    const reader = new CommitReader(file, this.rightBytes, sizeBytes);
    for (let next = await reader.next(); next !== null; next = await reader.next()) {
      const { commit, lines, endBytes } = next;
      this.#enter(commit);
      this.#history.addCommit(commit, lines);
      this.head = commit.head;
      this.#lastEventId = commit.batches.at(-1)?.last_event_id ?? this.#lastEventId;
      this.rightBytes = endBytes;
    }
    return reader.fault;
  }

  /** Checks that the file ends with the last event of its name. @throws {VerifyFailure} */
  finish(): void {
    this.#checkName("last", this.#lastEventId);
  }

  failureAt(fault: string): VerifyFailure {
    return this.#failure(`at byte ${this.rightBytes}: ${fault}`);
  }

  /** Checks that a commit can come next. */
  #enter(commit: Commit): void {
    const first = commit.batches[0]?.first_event_id;
    if (this.#lastEventId === null && first !== undefined) this.#checkName("first", first);
    const [expected, found] = [this.head, commit.head];
    if (first !== undefined || expected === null || expected === found) return;
    const what = `at byte ${this.rightBytes}: the chain head of a commit without events`;
    // With `chain` the head before is known to be right.
    const code = this.#history.chain ? "chain_head_mismatch" : this.#code;
    throw this.#failure(what, { expected, found }, code);
  }

  #checkName(which: "first" | "last", found: string | null): void {
    const expected = this.#range?.[`${which}EventId`];
    if (expected === undefined || expected === found) return;
    throw this.#failure(`the ${which} event that its name tells`, { expected, found: `${found}` });
  }

  #failure(
    what: string,
    values: Pick<FailureDetail, "expected" | "found"> = {},
    code: FailureCode = this.#code,
  ): VerifyFailure {
    const { path } = this.#listed;
    return new VerifyFailure(code, what, { path, eventId: this.#lastEventId, ...values });
  }
}
