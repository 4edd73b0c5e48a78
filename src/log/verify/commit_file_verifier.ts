/** Verifies a tail or pending file commit by commit: first its frame, then its events. */
import { parsePendingPath, TAIL_FILE } from "../storage/file_names.ts";
import { VerifyFailure } from "../storage/errors.ts";
import type { HistoryCheck } from "../wal/history_check.ts";
import { readToEnd } from "../wal/remnant.ts";
import type { ListedFile } from "./inventory.ts";

/**
 * Verifies a file with `history`, which has verified everything before it.
 * @returns whether it ends with an incomplete commit, torn or still being written, as only the tail
 *   may.
 * @throws {VerifyFailure} for the first check that fails.
 */
export async function verifyCommits(
  { path, file, sizeBytes }: ListedFile,
  history: HistoryCheck,
): Promise<boolean> {
  const isTail = path === TAIL_FILE;
  const range = parsePendingPath(path);
  if (!isTail && range === null) {
    throw new VerifyFailure("pending_invalid", `${path}: not a valid name for a pending file`);
  }
  history.enterFile(path, isTail ? "tail_invalid" : "pending_invalid");
  let first: string | undefined;
  const { endBytes, fault, corruption } = await readToEnd(file, sizeBytes, ({ commit, lines }) => {
    first ??= commit.batches[0]?.first_event_id;
    if (range !== null && first !== undefined && first !== range.firstEventId) {
      const values = { eventId: null, expected: range.firstEventId, found: first };
      throw history.failure("first event differs from the file name", values);
    }
    history.addCommit(commit, lines);
  });
  if (corruption !== null || fault !== null && !isTail) {
    throw history.failure(`at byte ${endBytes}: ${fault}`);
  }
  const found = `${history.lastEventId}`;
  if (range !== null && range.lastEventId !== found) {
    const values = { expected: range.lastEventId, found };
    throw history.failure("last event differs from the file name", values);
  }
  return fault !== null;
}
