/**
 * Checks a tail or pending file: the frames of its commits first, then the events in the commits
 * that are right, so that of two faults the one that comes first in the log is found. Nothing of a
 * commit is looked at before its frame is known to be right.
 */
import { batchPieces } from "./batch_pieces.ts";
import { isCovered } from "./commit_file.ts";
import type { Commit } from "./commit_frame.ts";
import { scanCommits } from "./commit_scan.ts";
import type { HistoryCheck } from "./history_check.ts";
import { parsePendingName } from "./layout.ts";
import { CorruptLogError } from "./log_error.ts";
import { findCommitAfter } from "./remnant.ts";
import type { ListedFile } from "./verify_inventory.ts";
import { type FailureCode, type FailureDetail, VerifyFailure } from "./verify_failure.ts";

const LF = 0x0a;

type FileFault = Extract<FailureCode, "pending_invalid" | "tail_invalid">;

/** What comes before a pending file. */
export interface Before {
  /** Chain head after it. */
  head: string;
  /** Last event that is in a segment: commits up to it are not looked at beyond their frames. */
  sealedThrough: string | null;
}

/**
 * Feeds a pending file to `history`, which has taken in all that comes before it.
 * @returns the chain head after it.
 * @throws {VerifyFailure} the first check that does not hold.
 */
export async function verifyPending(
  listed: ListedFile,
  before: Before,
  history: HistoryCheck,
): Promise<string> {
  history.enterFile(listed.path, "pending_invalid");
  const frames = await scanFrames(listed, before);
  if (frames.fault === null) checkName(listed.path, frames);
  await checkLines(listed, frames, "pending_invalid", history);
  if (frames.fault !== null) throw faultAt(listed, frames, "pending_invalid", history);
  return frames.head;
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
  let { frames, isRemnant } = await scanTail(listed, head);
  if (frames.fault !== null && !isRemnant) {
    // A writer may have undone a commit and written the next one while its place was read.
    ({ frames, isRemnant } = await scanTail(listed, head));
  }
  await checkLines(listed, frames, "tail_invalid", history);
  if (frames.fault !== null && !isRemnant) {
    throw faultAt(listed, frames, "tail_invalid", history);
  }
  return { rightBytes: frames.rightBytes, isRemnant };
}

async function scanTail(
  listed: ListedFile,
  head: string,
): Promise<{ frames: Frames; isRemnant: boolean }> {
  const { file, sizeBytes } = listed;
  const frames = await scanFrames(listed, { head, sealedThrough: null });
  const isRemnant = frames.fault !== null && frames.isCut &&
    await findCommitAfter(file, sizeBytes, frames.rightBytes) === null;
  return { frames, isRemnant };
}

/** What the frames of a file say. */
interface Frames {
  /** All commits before are covered by segments. */
  startBytes: number;
  /** All commits before are right. */
  rightBytes: number;
  /** Why the commit at `rightBytes` is not; null at the end of the file. */
  fault: string | null;
  /** Whether that commit has no right frame; what a frame holds was never written in part. */
  isCut: boolean;
  /** The heads that disagree, when that is the fault. */
  headFault: Pick<FailureDetail, "expected" | "found"> | null;
  firstEventId: string | null;
  lastEventId: string | null;
  /** Chain head after the last right commit. */
  head: string;
}

async function scanFrames(
  { file, sizeBytes }: ListedFile,
  before: Before,
): Promise<Frames> {
  const { head, sealedThrough } = before;
  const frames: Frames = {
    startBytes: 0,
    rightBytes: 0,
    fault: null,
    isCut: false,
    headFault: null,
    firstEventId: null,
    lastEventId: null,
    head,
  };
  let lines = 0;
  const { fault } = await scanCommits(file, sizeBytes, {
    lines: (piece) => void (lines += countLines(piece)),
    commit(commit, offset, endOffset) {
      const isNextCovered = frames.startBytes === offset && isCovered(commit, sealedThrough);
      if (frames.startBytes === offset && offset > 0 && !isNextCovered) endCovered(frames, before);
      if (frames.fault === null) addFrame(frames, { commit, lines, endOffset });
      if (frames.fault === null && isNextCovered) frames.startBytes = endOffset;
      lines = 0;
    },
  });
  if (frames.fault !== null || fault === null) return frames;
  return { ...frames, fault, isCut: true };
}

/** The commits that segments cover end here; the segments end with them. */
function endCovered(frames: Frames, { head, sealedThrough }: Before): void {
  if (frames.lastEventId !== sealedThrough) {
    // No sealing leaves that, so all of the file is to follow the segments.
    frames.startBytes = 0;
  } else if (frames.head !== head) {
    frames.fault = "the chain head where the segments end";
    frames.headFault = { expected: head, found: frames.head };
  }
}

/** A commit whose frame is right. */
interface FramedCommit {
  commit: Commit;
  /** Number of its event lines. */
  lines: number;
  endOffset: number;
}

function addFrame(frames: Frames, { commit, lines, endOffset }: FramedCommit): void {
  const { batches, head } = commit;
  const events = batches.reduce((sum, batch) => sum + batch.events, 0);
  if (lines !== events) {
    frames.fault = `the commit has ${lines} lines and batches of ${events} events`;
    return;
  }
  if (batches.length === 0 && head !== frames.head) {
    frames.fault = "the chain head of a commit without events";
    frames.headFault = { expected: frames.head, found: head };
    return;
  }
  frames.firstEventId ??= batches[0]?.first_event_id ?? null;
  frames.lastEventId = batches.at(-1)?.last_event_id ?? frames.lastEventId;
  frames.head = head;
  frames.rightBytes = endOffset;
}

function countLines(piece: Uint8Array): number {
  let lines = 0;
  for (let end = piece.indexOf(LF); end >= 0; end = piece.indexOf(LF, end + 1)) lines += 1;
  return lines;
}

function checkName(path: string, { firstEventId, lastEventId }: Frames): void {
  const range = parsePendingName(path.slice(path.lastIndexOf("/") + 1));
  if (range === null) {
    throw new VerifyFailure("pending_invalid", "not the name of a rotated tail", { path });
  }
  if (range.firstEventId === firstEventId && range.lastEventId === lastEventId) return;
  throw new VerifyFailure("pending_invalid", "the events that its name tells", {
    path,
    expected: `${range.firstEventId} to ${range.lastEventId}`,
    found: `${firstEventId} to ${lastEventId}`,
  });
}

async function checkLines(
  { file, path }: ListedFile,
  { startBytes, rightBytes }: Frames,
  code: FileFault,
  history: HistoryCheck,
): Promise<void> {
  try {
    for await (const piece of batchPieces(file, rightBytes, path, startBytes)) history.add(piece);
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    const what = error.message.replace(`${path}: `, "");
    throw new VerifyFailure(code, what, { path }, { cause: error });
  }
}

function faultAt(
  { path }: ListedFile,
  { rightBytes, fault, headFault, lastEventId }: Frames,
  code: FileFault,
  history: HistoryCheck,
): VerifyFailure {
  const detail = { path, eventId: lastEventId, ...headFault };
  // Where the chain is followed, the head before is known to be right.
  const isOfChain = headFault !== null && history.chain;
  const what = `at byte ${rightBytes}: ${fault}`;
  return new VerifyFailure(isOfChain ? "chain_head_mismatch" : code, what, detail);
}
