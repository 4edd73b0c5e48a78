/** Verifies a tail or pending file commit by commit: first its frame, then its events. */
import { CommitReader } from "../wal/commit_reader.ts";
import { remnantFault } from "../wal/remnant.ts";
import { parsePendingName } from "../storage/file_names.ts";
import { VerifyFailure } from "../storage/errors.ts";
import type { HistoryCheck } from "../wal/history_check.ts";
import type { ListedFile } from "./inventory.ts";

/**
 * Verifies a pending file with `history`, which has verified everything before it.
 * @throws {VerifyFailure} for the first check that fails.
 */
export async function verifyPending(listed: ListedFile, history: HistoryCheck): Promise<void> {
  const { path, file, sizeBytes } = listed;
  const range = parsePendingName(path.slice(path.lastIndexOf("/") + 1));
  if (range === null) {
    throw new VerifyFailure("pending_invalid", `${path}: not a valid name for a pending file`);
  }
  history.enterFile(path, "pending_invalid");
  const reader = new CommitReader(file, 0, sizeBytes);
  await addCommits(reader, history, range.firstEventId);
  if (reader.fault !== null) throw frameFailure(reader, history);
  const [expected, found] = [range.lastEventId, `${history.lastEventId}`];
  if (expected === found) return;
  throw history.failure("last event differs from the file name", { expected, found });
}

/**
 * Verifies the tail with `history`, like `verifyPending()` for a pending file. Returns whether it
 * ends with an incomplete commit, torn or still being written.
 */
export async function verifyTail(
  { path, file, sizeBytes }: ListedFile,
  history: HistoryCheck,
): Promise<boolean> {
  history.enterFile(path, "tail_invalid");
  let reader = new CommitReader(file, 0, sizeBytes);
  for (let isRetry = false;; isRetry = true) {
    await addCommits(reader, history);
    const { endBytes, fault } = reader;
    const isRemnant = fault !== null;
    if (!isRemnant || await remnantFault(file, sizeBytes, endBytes) === null) {
      return isRemnant;
    }
    if (isRetry) throw frameFailure(reader, history);
    // While this commit was being read, a writer may have discarded it and written another.
    reader = new CommitReader(file, endBytes, sizeBytes);
  }
}

/**
 * Checks the commits up to the end or the first malformed frame.
 * @param expected id of the first event, if known.
 * @throws {VerifyFailure} if a valid frame has invalid content, which a torn write cannot cause.
 */
async function addCommits(
  reader: CommitReader,
  history: HistoryCheck,
  expected: string | null = null,
): Promise<void> {
  let first: string | undefined;
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    const found = next.commit.batches[0]?.first_event_id;
    first ??= found;
    if (expected !== null && found !== undefined && first !== expected) {
      const values = { eventId: null, expected, found };
      throw history.failure("first event differs from the file name", values);
    }
    history.addCommit(next.commit, next.lines);
  }
}

function frameFailure({ endBytes, fault }: CommitReader, history: HistoryCheck): VerifyFailure {
  return history.failure(`at byte ${endBytes}: ${fault}`);
}
