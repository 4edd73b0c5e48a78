/**
 * Decodes row groups into stored lines, on another thread, so that replaying sealed history does
 * not delay other clients. If no thread can be started, the main thread decodes.
 */
import { Buffer } from "node:buffer";
import { freeOwnMemory } from "../../free_memory.ts";
import {
  ThreadPool,
  type ThreadPoolOptions,
  ThreadUnavailableError,
} from "../../threads/thread_pool.ts";
import { scanColumns } from "../parquet/column_reader.ts";
import { SegmentError } from "../storage/errors.ts";
import { type ColumnValues, columnValues, isValueAt } from "./column_values.ts";
import { assembleLines } from "./line_assembler.ts";
import type { RowGroup } from "./segment_footer.ts";
import {
  COLUMN_NAMES,
  columnElement,
  type ColumnName,
  columnNumber,
  valueBytesMax,
} from "./segment_schema.ts";

/** Idle time after which the thread exits. */
const DECODE_THREAD_IDLE_MS = 60_000;

/** Decodes row groups. Calls do not overlap. */
export interface RowGroupDecoder {
  /** Returns the stored lines; `request.bytes` may be transferred. @throws {SegmentError} */
  decode(request: DecodeRequest): Promise<Buffer>;
  close(): Promise<void>;
}

/** Decodes on the calling thread. */
export const INLINE_DECODER: RowGroupDecoder = {
  decode: decodeLines,
  close: () => Promise.resolve(),
};

/** Decodes on a worker thread, which starts on demand. @param options for tests. */
export function decodeThread(options: Partial<ThreadPoolOptions> = {}): RowGroupDecoder {
  const module = new URL("./decode_worker.ts", import.meta.url);
  const bounds = { threadsMax: 1, idleMs: DECODE_THREAD_IDLE_MS };
  const threads = new ThreadPool<DecodeRequest, ArrayBuffer>(module, { ...bounds, ...options });
  return {
    async decode(request) {
      try {
        return Buffer.from(await threads.request(request, [request.bytes]));
      } catch (cause) {
        if (cause instanceof ThreadUnavailableError) return await decodeLines(request);
        throw new SegmentError((cause as Error).message, { cause });
      }
    },
    close: () => threads.close(),
  };
}

/** A request to decode a row group; can be sent between threads. */
export interface DecodeRequest {
  rowGroup: RowGroup;
  /** The file from the first column chunk to the end of the last. */
  bytes: ArrayBuffer;
  /** Selects the rows with this key; all rows if undefined. */
  recordKey: string | undefined;
}

/** Returns the stored lines, each with its LF, in log order. @throws {SegmentError} */
export async function decodeLines(
  { rowGroup, bytes, recordKey }: DecodeRequest,
): Promise<Buffer> {
  const chunkOf = chunksIn(rowGroup, bytes);
  let rows: number[] | undefined;
  if (recordKey !== undefined) {
    const { record_key } = await decodeColumns(rowGroup, ["record_key"], chunkOf);
    const key = Buffer.from(recordKey);
    rows = [...record_key.starts.keys()].filter((row) => isValueAt(record_key, row, key));
    if (rows.length === 0) return Buffer.alloc(0);
  }
  const columns = await decodeColumns(rowGroup, COLUMN_NAMES, chunkOf);
  const lines = await assembleLines(columns, rows);
  for (const { bytes } of Object.values(columns)) freeOwnMemory(bytes);
  return lines;
}

/** Returns a function that copies a column chunk out of a row group. */
function chunksIn({ columns }: RowGroup, bytes: ArrayBuffer): (name: ColumnName) => ArrayBuffer {
  const offset = columns[0]!.start;
  return (name) => {
    const { start, end } = columns[columnNumber(name)]!;
    return bytes.slice(start - offset, end - offset);
  };
}

/**
 * Decodes columns in a row group.
 * @param names in schema order.
 * @throws {SegmentError}
 */
export async function decodeColumns<Name extends ColumnName>(
  { rows, columns }: RowGroup,
  names: readonly Name[],
  chunkOf: (name: Name) => ArrayBuffer,
): Promise<Record<Name, ColumnValues>> {
  const scanned = names.map((name) => {
    const place = columns[columnNumber(name)]!;
    return { element: columnElement(name), place, chunk: chunkOf(name) };
  });
  const decoded = await scanColumns(scanned, rows);
  const values = names.map((name, n) => {
    return [name, columnValues(decoded[n]!, rows, valueBytesMax(name))];
  });
  return Object.fromEntries(values) as Record<Name, ColumnValues>;
}
