/**
 * A snapshot's view of a tail or pending file, up to a fixed end. The file may be sealed while it
 * is being read; the reader then continues in the segments, after the last event it returned. The
 * segments contain the same lines, byte for byte.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { Turns } from "../../turns.ts";
import { spelledText } from "../line/line_bytes.ts";
import { firstLineAfter } from "../line/stored_line.ts";
import type { ScanMemory } from "../read/scan_memory.ts";
import { type LinesWanted, type LogFile, readLines } from "../read/snapshot.ts";
import { CorruptLogError } from "../storage/errors.ts";
import type { CommitFile } from "./commit_file.ts";
import { CachedReads } from "./cached_reads.ts";
import { type Block, recordKeyHash } from "./sparse_index.ts";

/** Shared by all readers, which have one budget for blocking reads. */
const cachedReads = new CachedReads();
/** Checking and searching a large block takes tens of milliseconds, so others run after each. */
const largeBlocks = new Turns({ timerTurns: 1 });

/** Returns a view of a file that has at least one event. */
export function fileView(target: CommitFile): LogFile {
  const { path, lastEventId, endBytes } = target;
  assert(lastEventId !== null, "a file in a snapshot must have events");
  return {
    path,
    lastEventId,
    lines: (wanted) => commitLines(target, { end: endBytes, lastEventId }, wanted),
  };
}

/**
 * See `LogFile.lines()`. Reads the file, then the segments once it is sealed.
 * @param range the offset after its last line, and the last event before that.
 */
async function* commitLines(
  target: CommitFile,
  range: { end: number; lastEventId: string },
  wanted: LinesWanted,
): AsyncGenerator<Buffer, void> {
  const { after, filter: { recordKey }, memory } = wanted;
  const { index } = target;
  const key = recordKey === undefined ? null : recordKeyHash(spelledText(recordKey));
  // Offset of the next read, where a line starts. If it is past the end of the range, the range
  // contains no requested events.
  let position = index.seek(after);
  let lastRead = after;
  for (;;) {
    if (key !== null) position = index.seekKey(position, key);
    if (position >= range.end) return;
    if (target.sealedIn !== null) {
      const rest = { ...wanted, after: lastRead };
      return yield* sealedLines(target.sealedIn, range.lastEventId, rest);
    }
    const readBytes = Math.min(READ_CHUNK_BYTES, wanted.wantedBytes());
    // With a key, the blocks after the first may not be wanted.
    const blocks = index.blocks(position, key === null ? readBytes : 1);
    const [{ start }] = blocks as [Block];
    const sizeBytes = blocks.at(-1)!.end - start;
    if (sizeBytes > READ_CHUNK_BYTES) {
      await wanted.reserve?.(sizeBytes);
      // Meanwhile, the file may have been sealed and closed.
      if (target.sealedIn !== null) continue;
    }
    const { chunk, last } = await readBlocks(target, blocks, memory);
    const end = Math.min(last.end, range.end);
    const lines = chunk.subarray(position - start, end - start);
    position = end;
    lastRead = end === range.end ? range.lastEventId : last.lastEventId || lastRead;
    yield lines;
  }
}

/**
 * Reads blocks until one is damaged, and checks their CRCs. Returns the last undamaged one.
 * @throws {CorruptLogError} if the first block is damaged.
 */
async function readBlocks(
  { file, path }: CommitFile,
  blocks: readonly Block[],
  memory: ScanMemory,
): Promise<{ chunk: Buffer; last: Block }> {
  const [{ start }] = blocks as [Block];
  const chunk = memory.take(blocks.at(-1)!.end - start);
  const readBytes = await cachedReads.read(file, chunk, start);
  if (chunk.length > READ_CHUNK_BYTES) await largeBlocks.next();
  const damagedAt = blocks.findIndex((block) =>
    block.end - start > readBytes ||
    crc32(chunk.subarray(block.start - start, block.end - start)) !== block.crc
  );
  const last = blocks.at(damagedAt < 0 ? -1 : damagedAt - 1)!;
  if (damagedAt !== 0) return { chunk, last };
  const [damaged] = blocks as [Block];
  const what = damaged.end - start > readBytes
    ? `the file ends at byte ${start + readBytes}, before the end of the block`
    : "the block does not match its CRC-32";
  throw new CorruptLogError(`${path}: corrupt at byte ${start} (to ${damaged.end}): ${what}`);
}

/** Yields lines from the segments, up to event `lastEventId`. */
async function* sealedLines(
  segments: readonly LogFile[],
  lastEventId: string,
  wanted: LinesWanted,
): AsyncGenerator<Buffer, void> {
  for await (const lines of readLines(segments, wanted)) {
    const end = firstLineAfter(lines, lastEventId);
    if (end > 0) yield lines.subarray(0, end);
    if (end < lines.length) return;
  }
}
