/**
 * Reads the blocks of a list in a footer. They are read by the thousand for a page of streams, so
 * the memory that they are read into is used again.
 */
import { Buffer } from "node:buffer";
import { LIST_BLOCK_BYTES, LIST_ENTRY_BYTES_MAX, STREAM_SEEKS_MAX } from "../../limits.ts";
import type { FileRange } from "../parquet/footer_layout.ts";
import {
  blockCount,
  blockRange,
  decodeBlock,
  decodeFirstKey,
  firstRange,
  type ListBlocks,
  type ListName,
} from "./segment_list.ts";

/** Memories of such reads that are kept for the next ones: about 1 MiB. */
const LIST_MEMORIES_KEPT_MAX = 8 * STREAM_SEEKS_MAX;

/** How a file is read, each with its own way to name it in what it throws. */
export interface ListFile {
  /** Fills `bytes` from a place of the file. @throws {SegmentError} when that ends before. */
  fill(bytes: Uint8Array, position: number): Promise<void>;
  decode<Result>(decode: () => Result): Result;
}

/** What nobody reads into at the moment. */
const spareMemory: Buffer[] = [];

/** The list at a place of a file. */
export function listBlocks(
  name: ListName,
  place: FileRange,
  { fill, decode }: ListFile,
): ListBlocks {
  const listBytes = place.end - place.start;
  const read = async <Result>(
    { start, end }: FileRange,
    decodeRange: (name: ListName, bytes: Buffer) => Result,
  ): Promise<Result> => {
    const memory = spareMemory.pop() ??
      Buffer.allocUnsafeSlow(LIST_BLOCK_BYTES + LIST_ENTRY_BYTES_MAX);
    try {
      const bytes = memory.subarray(0, end - start);
      await fill(bytes, place.start + start);
      return decode(() => decodeRange(name, bytes));
    } finally {
      if (spareMemory.length < LIST_MEMORIES_KEPT_MAX) spareMemory.push(memory);
    }
  };
  return {
    count: () => Promise.resolve(blockCount(listBytes)),
    firstKey: (number) => read(firstRange(number, listBytes), decodeFirstKey),
    block: (number) => read(blockRange(number, listBytes), decodeBlock),
  };
}
