/**
 * Reads a tail or pending file commit by commit, each as a whole, and hands out none whose frame is
 * not right. Memory is that of the largest commit.
 */
import type { Buffer } from "node:buffer";
import { type Commit, CommitHasher } from "./commit_frame.ts";
import { readHeader } from "./commit_scan.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { SequentialReader } from "../storage/sequential_reader.ts";
import type { StorageFile } from "../storage/storage.ts";

const LF = 0x0a;

/** A commit whose frame is right. */
export interface WholeCommit {
  commit: Commit;
  /** All its event lines, each with its LF, valid until the next commit is asked for. */
  lines: Buffer;
  /** Where it ends in the file. */
  endBytes: number;
}

export class CommitReader {
  readonly #reader: SequentialReader;
  readonly #sizeBytes: number;
  #endBytes: number;
  #fault: string | null = null;

  /** Reads the commits from `startBytes`, where one starts, up to `sizeBytes`. */
  constructor(file: StorageFile, startBytes: number, sizeBytes: number) {
    this.#reader = new SequentialReader(file, startBytes, sizeBytes);
    this.#sizeBytes = sizeBytes;
    this.#endBytes = startBytes;
  }

  /** Where the last commit read ends. */
  get endBytes(): number {
    return this.#endBytes;
  }

  /** Why there is no commit at `endBytes`; null when all have been right so far. */
  get fault(): string | null {
    return this.#fault;
  }

  /** The next commit; null at the end, and where the next one is not right. */
  async next(): Promise<WholeCommit | null> {
    if (this.#endBytes === this.#sizeBytes || this.#fault !== null) return null;
    const header = await readHeader(this.#reader);
    if (header === null) return this.#stop("no commit header");
    const { commit } = header;
    const end = this.#reader.offset + commit.bytes;
    if (end > this.#sizeBytes) {
      return this.#stop(`the commit ends at ${end}, the file at ${this.#sizeBytes}`);
    }
    // First of all: the header's bytes lie in the reader's buffer.
    const hasher = new CommitHasher(header);
    const lines = await this.#reader.readWhole(commit.bytes);
    if (lines === null || !isBody(lines, hasher)) {
      return this.#stop("the commit does not match its sha256");
    }
    this.#endBytes = end;
    return { commit, lines, endBytes: end };
  }

  /** Gives its memory back, and with it the lines of the last commit. */
  close(): void {
    this.#reader.close();
  }

  #stop(fault: string): null {
    this.#fault = fault;
    return null;
  }
}

/**
 * The commits with events in [startBytes, sizeBytes) of a file. The lines of the last one are gone
 * when the iteration ends.
 * @param path names the file in errors.
 * @throws {CorruptLogError} while iterating, at a commit that is not right.
 */
export async function* readCommits(
  file: StorageFile,
  startBytes: number,
  sizeBytes: number,
  path: string,
): AsyncGenerator<WholeCommit, void> {
  const reader = new CommitReader(file, startBytes, sizeBytes);
  try {
    for (let next = await reader.next(); next !== null; next = await reader.next()) {
      if (next.commit.batches.length > 0) yield next;
    }
    if (reader.fault !== null) {
      throw new CorruptLogError(`${path}: corrupt at byte ${reader.endBytes}: ${reader.fault}`);
    }
  } finally {
    reader.close();
  }
}

function isBody(lines: Buffer, hasher: CommitHasher): boolean {
  hasher.update(lines);
  return hasher.matches() && (lines.length === 0 || lines.at(-1) === LF);
}
