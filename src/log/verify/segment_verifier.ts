/**
 * Verifies a segment against its manifest entry: file bytes, format and events, and the structures
 * whose damage would hide events (ids of row groups, index). Reads one row group at a time.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { sha256Hex } from "../../event/hash.ts";
import { HASH_BYTES } from "../line/line_bytes.ts";
import { decodeTrailer, IndexError, TRAILER_BYTES } from "../index/index_format.ts";
import { IndexBuilder } from "../index/index_writer.ts";
import {
  bytesAt,
  type ColumnValues,
  constantValues,
  hexAt,
  textAt,
  uuidAt,
} from "../segment/column_values.ts";
import type { LineColumns } from "../segment/line_assembler.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import { openChecked, type Segment } from "../segment/segment_reader.ts";
import { COLUMN_NAMES } from "../segment/segment_schema.ts";
import { VerifyFailure } from "../storage/errors.ts";
import { isNotFound, type Storage } from "../storage/storage.ts";
import { type BatchIdentity, type BatchNames, HistoryCheck } from "../wal/history_check.ts";

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
  const segment = await openChecked(storage, expected).catch((cause) => {
    if (!isNotFound(cause)) throw cause;
    throw new VerifyFailure("manifest_invalid", `${path}: listed but missing`, { cause });
  });
  try {
    history.checkHead(expected.previous_head);
    await checkRows(segment, history);
    history.checkHead(expected.head);
  } finally {
    await segment.close();
  }
}

/** The result for one segment; can be sent between threads. */
export interface CheckedSegment {
  /** Events before the failure. */
  events: number;
  /** The hashes of the batches before the failure. */
  hashes: BigUint64Array;
  failure: Pick<VerifyFailure, "code" | "message"> | null;
}

/** Leading hex digits of a SHA-256: 64 bits, which two batches rarely share. */
const HASH_DIGITS = 16;

/** Returns a hash that is equal for batches with the same identity. */
export function batchHash({ source, batch_id }: BatchIdentity): bigint {
  return BigInt("0x" + sha256Hex(`${source}\n${batch_id}`).slice(0, HASH_DIGITS));
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

/** Checks all rows, then what the footer and the index say about them. */
async function checkRows(segment: Segment, history: HistoryCheck): Promise<void> {
  const { metadata, rowGroups, index: { start, end } } = await segment.footer();
  const index = new IndexBuilder();
  let batch: BatchNames | null = null;
  let batches = 0;
  for (const [number, { rows, firstEventId, lastEventId }] of rowGroups.entries()) {
    const columns: LineColumns = {
      ...{ payload: constantValues(NULL, rows), event_hash: constantValues(ZERO_HASH, rows) },
      ...await segment.readColumns(number, history.chain ? COLUMN_NAMES : BRIEF_COLUMNS),
    };
    const lines = await segment.assemble(columns);
    let at = 0;
    for (let row = 0; row < rows; row++) {
      const next: BatchNames = batch !== null && continues(columns, row)
        ? batch
        : batchAt(columns, row, history);
      if (next.source !== batch?.source || next.batch_id !== batch.batch_id) {
        if (batch !== null) history.endBatch();
        history.startBatch(next);
        index.addBatch(next.source, next.batch_id);
        batches += 1;
      } else if (next.batch_digest !== batch.batch_digest) {
        throw history.failure(`batch ${next.batch_id} has two digests`);
      }
      batch = next;
      at = history.addLine(lines, at);
      index.addEvent(next.source, history.event, history.lastEventId!);
    }
    index.endRowGroup();
    // Errors in rows are more specific, so the statistics that locate them are checked last.
    const ids = [uuidAt(columns.event_id, 0), uuidAt(columns.event_id, rows - 1)];
    requireSame(`first and last event of row group ${number}`, ids, [firstEventId, lastEventId]);
  }
  history.endBatch();
  const stored = await segment.readBytes(start, end);
  if (!stored.equals(await index.finish(filterBytesIn(stored)))) {
    throw history.failure("the index of the file does not match its rows", { eventId: null });
  }
  const ends = [rowGroups[0]!.firstEventId, rowGroups.at(-1)!.lastEventId];
  requireSame("first and last event", ends, [metadata.first_event_id, metadata.last_event_id]);
  requireSame("batches", [batches], [metadata.batches]);

  function requireSame(what: string, found: unknown[], expected: unknown[]): void {
    if (`${found}` === `${expected}`) return;
    throw history.failure(what, { eventId: null, expected: `${expected}`, found: `${found}` });
  }
}

/** Returns the filter's size in an index, which its writer chose; undefined if it is damaged. */
function filterBytesIn(index: Buffer): number | undefined {
  try {
    return decodeTrailer(index.subarray(-TRAILER_BYTES), index.length).filterBytes;
  } catch (error) {
    if (error instanceof IndexError) return undefined;
    throw error;
  }
}

/** Without `chain`, payloads and event hashes are not read, which are most of a segment. */
const BRIEF_COLUMNS = COLUMN_NAMES.filter((name) => name !== "payload" && name !== "event_hash");
const NULL = Buffer.from("null");
const ZERO_HASH = Buffer.alloc(HASH_BYTES);

/** Whether a row has the dictionary values of the one before: the same batch and digest. */
function continues({ source, batch_id, batch_digest }: LineColumns, row: number): boolean {
  return row > 0 &&
    [batch_id, source, batch_digest].every(({ starts }) => starts[row] === starts[row - 1]);
}

function batchAt(
  { source, batch_id, batch_digest }: LineColumns,
  row: number,
  history: HistoryCheck,
): BatchNames {
  // Different bytes that are not valid UTF-8 could decode to the same string.
  const wholeText = (column: ColumnValues) => {
    if (isUtf8(bytesAt(column, row))) return textAt(column, row);
    throw history.failure(`row ${row} has a source or batch id that is not valid UTF-8`);
  };
  return {
    source: wholeText(source),
    batch_id: wholeText(batch_id),
    batch_digest: hexAt(batch_digest, row),
  };
}
