/**
 * Reads a rotated tail as what a segment is made from: the lines of its batches, in pieces. Each
 * commit is checked against its frame once more; the piece that ends it comes only if it is right.
 */
import { Buffer } from "node:buffer";
import { COMMIT_HEADER_BYTES_MAX, READ_CHUNK_BYTES } from "../limits.ts";
import {
  type BatchEntry,
  CommitHasher,
  type CommitHeader,
  decodeCommitHeader,
} from "./commit_frame.ts";
import { CorruptLogError } from "./log_error.ts";
import { SequentialReader } from "./sequential_reader.ts";
import type { StorageFile } from "./storage.ts";

const LF = 0x0a;

/** The next events of the log, all of one batch. A batch may come in several pieces. */
export interface BatchPiece {
  /** The same object for all pieces of a batch. */
  entry: BatchEntry;
  /** Whole lines, each with its LF, which nobody changes any more. */
  lines: Buffer;
  /** Chain head after these lines, where they end a commit. */
  head?: string;
}

/**
 * The batches of the commits in the first `sizeBytes` of a file.
 * @param startBytes where the first of these commits starts.
 * @throws {CorruptLogError} while iterating, when a commit is not right.
 */
export async function* batchPieces(
  file: StorageFile,
  sizeBytes: number,
  path: string,
  startBytes = 0,
): AsyncGenerator<BatchPiece, void> {
  const reader = new SequentialReader(file, startBytes, sizeBytes);
  while (reader.offset < sizeBytes) {
    const offset = reader.offset;
    const line = await reader.readLine(COMMIT_HEADER_BYTES_MAX);
    const header = line === null ? null : decodeCommitHeader(line);
    if (header === null || reader.offset + header.commit.bytes > sizeBytes) {
      throw new CorruptLogError(`${path}: no commit at byte ${offset}`);
    }
    yield* commitPieces(reader, header, `${path}: the commit at byte ${offset}`);
  }
}

async function* commitPieces(
  reader: SequentialReader,
  header: CommitHeader,
  name: string,
): AsyncGenerator<BatchPiece, void> {
  const { batches, head } = header.commit;
  const body = new CommitBody(reader, header);
  let batch = 0;
  let remainingEvents = batches[0]?.events ?? 0;
  for (let lines = await body.next(); lines !== null; lines = await body.next()) {
    if (body.isComplete && !body.matches()) {
      throw new CorruptLogError(`${name} does not match its sha256`);
    }
    for (let start = 0; start < lines.length;) {
      const entry = batches[batch];
      if (entry === undefined) throw new CorruptLogError(`${name} has more lines than its batches`);
      const { end, count } = skipLines(lines, start, remainingEvents);
      remainingEvents -= count;
      const isLast = body.isComplete && end === lines.length;
      yield { entry, lines: lines.subarray(start, end), ...(isLast && { head }) };
      if (remainingEvents === 0) remainingEvents = batches[++batch]?.events ?? 0;
      start = end;
    }
  }
  if (batch < batches.length) {
    throw new CorruptLogError(`${name} has fewer lines than its batches`);
  }
}

/** Passes over so many lines, or as many as there are; `lines` ends with one. */
function skipLines(lines: Buffer, start: number, limit: number): { end: number; count: number } {
  let end = start;
  let count = 0;
  while (count < limit && end < lines.length) {
    end = lines.indexOf(LF, end) + 1;
    count += 1;
  }
  return { end, count };
}

/** The event lines of one commit, in pieces that stay as they are. */
class CommitBody {
  readonly #reader: SequentialReader;
  readonly #hasher: CommitHasher;
  #unreadBytes: number;
  /** The start of a line whose rest has not been read. */
  #cut: Buffer = Buffer.alloc(0);

  constructor(reader: SequentialReader, header: CommitHeader) {
    this.#reader = reader;
    this.#hasher = new CommitHasher(header);
    this.#unreadBytes = header.commit.bytes;
  }

  get isComplete(): boolean {
    return this.#unreadBytes === 0 && this.#cut.length === 0;
  }

  matches(): boolean {
    return this.#hasher.matches();
  }

  /** The next whole lines; null at the end. */
  async next(): Promise<Buffer | null> {
    while (this.#unreadBytes > 0) {
      // A line longer than a read is doubled towards, so that it is copied few times.
      const wantedBytes = Math.min(
        this.#unreadBytes,
        Math.max(READ_CHUNK_BYTES, this.#cut.length),
      );
      const piece = Buffer.allocUnsafeSlow(this.#cut.length + wantedBytes);
      this.#cut.copy(piece);
      await this.#fill(piece, this.#cut.length);
      const linesBytes = piece.lastIndexOf(LF) + 1;
      this.#cut = piece.subarray(linesBytes);
      if (linesBytes > 0) return piece.subarray(0, linesBytes);
    }
    if (this.#cut.length > 0) throw new CorruptLogError("the last line of a commit does not end");
    return null;
  }

  async #fill(piece: Buffer, start: number): Promise<void> {
    let at = start;
    while (at < piece.length) {
      const some = await this.#reader.readSome(piece.length - at);
      if (some.length === 0) throw new CorruptLogError("a commit is cut off");
      some.copy(piece, at);
      this.#hasher.update(some);
      at += some.length;
      this.#unreadBytes -= some.length;
    }
  }
}
