/** Verifies a tail or pending file commit by commit: first its frame, then its events. */
import { parsePendingPath } from "../storage/file_names.ts";
import { VerifyFailure } from "../storage/errors.ts";
import type { HistoryCheck } from "../wal/history_check.ts";
import { type CommitsEnd, readToEnd } from "../wal/remnant.ts";
import type { ListedFile } from "./inventory.ts";

/**
 * Verifies a pending file with `history`, which has verified everything before it.
 * @throws {VerifyFailure} for the first check that fails.
 */
export async function verifyPending(listed: ListedFile, history: HistoryCheck): Promise<void> {
  const { path, file, sizeBytes } = listed;
  const range = parsePendingPath(path);
  if (range === null) {
    throw new VerifyFailure("pending_invalid", `${path}: not a valid name for a pending file`);
  }
  history.enterFile(path, "pending_invalid");
  let first: string | undefined;
  const end = await readToEnd(file, sizeBytes, ({ commit, lines }) => {
    first ??= commit.batches[0]?.first_event_id;
    if (first !== undefined && first !== range.firstEventId) {
      const values = { eventId: null, expected: range.firstEventId, found: first };
      throw history.failure("first event differs from the file name", values);
    }
    history.addCommit(commit, lines);
  });
  if (end.fault !== null) throw frameFailure(end, history);
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
  const end = await readToEnd(file, sizeBytes, ({ commit, lines }) => {
    history.addCommit(commit, lines);
  });
  if (end.corruption !== null) throw frameFailure(end, history);
  return end.fault !== null;
}

function frameFailure({ endBytes, fault }: CommitsEnd, history: HistoryCheck): VerifyFailure {
  return history.failure(`at byte ${endBytes}: ${fault}`);
}
