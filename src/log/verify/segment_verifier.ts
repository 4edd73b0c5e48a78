/**
 * Verifies a segment against its manifest entry: file bytes, format and events. Reads one row group
 * at a time.
 */
import { SegmentError } from "../storage/errors.ts";
import { openChecked, SegmentRowsCheck } from "../segment/segment_check.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import type { Segment } from "../segment/segment_reader.ts";
import { isNotFound, type Storage } from "../storage/storage.ts";
import { batchHash } from "./batch_hashes.ts";
import { type Damage, type FailureCode, VerifyFailure } from "./failure.ts";
import { type BatchIdentity, HistoryCheck } from "./history_check.ts";

/**
 * Verifies a segment with `history`, which has verified everything before it.
 * @throws {VerifyFailure} for the first check that fails.
 */
export async function verifySegment(
  storage: Storage,
  expected: ExpectedSegment,
  history: HistoryCheck,
): Promise<void> {
  const { path } = expected;
  history.enterFile(path, "segment_invalid");
  try {
    const segment = await openChecked(storage, expected);
    try {
      history.checkHead(expected.previous_head);
      await addRows(segment, history);
      history.checkHead(expected.head);
    } finally {
      await segment.close();
    }
  } catch (error) {
    throw asFailure(path, error);
  }
}

/** The result for one segment; can be sent between threads. */
export interface CheckedSegment {
  /** Events before the failure. */
  events: number;
  /** The hashes of the batches before the failure. */
  hashes: BigUint64Array;
  failure: Damage<FailureCode> | null;
}

/** Verifies a segment on its own. The order of segments was checked with the manifest. */
export async function checkSegment(
  storage: Storage,
  expected: ExpectedSegment,
  chain: boolean,
): Promise<CheckedSegment> {
  const hashes: bigint[] = [];
  const onBatch = (batch: BatchIdentity) => void hashes.push(batchHash(batch));
  const history = new HistoryCheck({ chain, previousHead: null, onBatch });
  let failure: CheckedSegment["failure"] = null;
  try {
    await verifySegment(storage, expected, history);
  } catch (error) {
    if (!(error instanceof VerifyFailure)) throw error;
    failure = { code: error.code, message: error.message };
  }
  return { events: history.eventsChecked, hashes: BigUint64Array.from(hashes), failure };
}

async function addRows(segment: Segment, history: HistoryCheck): Promise<void> {
  const check = new SegmentRowsCheck(segment, { full: history.chain });
  let isFirst = true;
  for await (const { lines, batches } of check.rowGroups()) {
    let at = 0;
    for (const batch of batches) {
      if (batch.isStart && !isFirst) history.endBatch();
      if (batch.isStart) history.startBatch(batch);
      isFirst = false;
      for (let row = 0; row < batch.rows; row++) at = history.addLine(lines, at);
    }
  }
  history.endBatch();
  await check.finish();
}

function asFailure(path: string, error: unknown): unknown {
  const options = { cause: error };
  if (isNotFound(error)) {
    return new VerifyFailure("manifest_invalid", "listed but missing", { path }, options);
  }
  if (!(error instanceof SegmentError)) return error;
  // The error message already contains the path.
  const what = error.message.replace(`${path}: `, "");
  return new VerifyFailure(error.fault, what, { path }, options);
}
