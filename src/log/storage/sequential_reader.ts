/**
 * Reads a range of a file from front to back through one buffer: whole lines, a number of bytes, or
 * what is at hand. Memory is one chunk, and what is asked for.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { freeOwnMemory } from "../../free_memory.ts";
import { MEMORY_GROWTH_FACTOR } from "../../limits.ts";
import type { StorageFile } from "./storage.ts";

/**
 * Memory in which a commit is read to be sealed is kept for the next file up to this size: that of
 * a batch of 10,000 events of usual sizes.
 */
const READER_MEMORY_KEPT_BYTES_MAX = 12 * 1024 * 1024;

const LF = 0x0a;
const CHUNK_BYTES = 1024 * 1024;

const NO_MEMORY = Buffer.alloc(0);

/** What a reader of this thread that was closed has left for the next one. */
const spare: Buffer[] = [];

export class SequentialReader {
  readonly #file: StorageFile;
  readonly #end: number;
  #buffer: Buffer = spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /** Unread bytes are #buffer[#start, #filled); #start stands at #offset in the file. */
  #start = 0;
  #filled = 0;
  #offset: number;

  /** Reads from `start` up to `end`, in bytes of the file. */
  constructor(file: StorageFile, start: number, end: number) {
    assert(start <= end, "a range ends after it starts");
    this.#file = file;
    this.#offset = start;
    this.#end = end;
  }

  /** Place in the file of the next unread byte. */
  get offset(): number {
    return this.#offset;
  }

  /** What is read and not taken yet; valid until the next call. */
  get atHand(): Buffer {
    return this.#buffer.subarray(this.#start, this.#filled);
  }

  /** Takes so many of the bytes at hand. */
  skip(bytes: number): void {
    assert(bytes <= this.#filled - this.#start, "only what is at hand is skipped");
    this.#advance(this.#start + bytes);
  }

  /**
   * The next line without its LF, valid until the next call; null when none ends within
   * `limitBytes` or before the end of the range (nothing is consumed then).
   */
  async readLine(limitBytes: number): Promise<Buffer | null> {
    let searchedBytes = 0;
    for (;;) {
      const newline = this.#buffer.subarray(0, this.#filled).indexOf(
        LF,
        this.#start + searchedBytes,
      );
      if (newline >= 0) return newline - this.#start > limitBytes ? null : this.#take(newline);
      searchedBytes = this.#filled - this.#start;
      if (searchedBytes > limitBytes || !(await this.#fill())) return null;
    }
  }

  /** The next bytes at hand, at most `limitBytes`, valid until the next call; empty at the end. */
  async readSome(limitBytes: number): Promise<Buffer> {
    if (this.#start === this.#filled) await this.#fill();
    const end = Math.min(this.#filled, this.#start + limitBytes);
    const piece = this.#buffer.subarray(this.#start, end);
    this.#advance(end);
    return piece;
  }

  /**
   * The next `sizeBytes`, valid until the next call; null when the file or the range ends before
   * them (nothing is consumed then).
   */
  async readWhole(sizeBytes: number): Promise<Buffer | null> {
    while (this.#filled - this.#start < sizeBytes) {
      this.#growTo(sizeBytes);
      if (!(await this.#fill())) return null;
    }
    const end = this.#start + sizeBytes;
    const piece = this.#buffer.subarray(this.#start, end);
    this.#advance(end);
    return piece;
  }

  /** Gives its memory back: what it has given is gone, and nothing may be asked of it any more. */
  close(): void {
    const memory = this.#buffer;
    this.#buffer = NO_MEMORY;
    if (memory.length === 0) return;
    if (spare.length > 0 || memory.length > READER_MEMORY_KEPT_BYTES_MAX) freeOwnMemory(memory);
    else spare.push(memory);
  }

  #take(newline: number): Buffer {
    const line = this.#buffer.subarray(this.#start, newline);
    this.#advance(newline + 1);
    return line;
  }

  #advance(to: number): void {
    this.#offset += to - this.#start;
    this.#start = to;
  }

  /** Reads more behind what is at hand; false at the end of the range. */
  async #fill(): Promise<boolean> {
    const unreadBytes = this.#filled - this.#start;
    const wantedBytes = Math.min(CHUNK_BYTES, this.#end - this.#offset - unreadBytes);
    if (wantedBytes <= 0) return false;
    this.#makeRoom(unreadBytes, wantedBytes);
    const into = this.#buffer.subarray(this.#filled, this.#filled + wantedBytes);
    const readBytes = await this.#file.read(into, this.#offset + unreadBytes);
    this.#filled += readBytes;
    return readBytes > 0;
  }

  /**
   * Takes a larger buffer, where it is too small for `sizeBytes` and a chunk: once, not by steps,
   * and with room for somewhat more, which may be asked for next.
   */
  #growTo(sizeBytes: number): void {
    if (sizeBytes + CHUNK_BYTES <= this.#buffer.length) return;
    this.#moveTo(Buffer.allocUnsafeSlow(Math.ceil(sizeBytes * MEMORY_GROWTH_FACTOR) + CHUNK_BYTES));
  }

  #makeRoom(unreadBytes: number, wantedBytes: number): void {
    if (this.#filled + wantedBytes <= this.#buffer.length) return;
    const fits = unreadBytes + wantedBytes <= this.#buffer.length;
    this.#moveTo(fits ? this.#buffer : Buffer.allocUnsafeSlow(2 * this.#buffer.length));
  }

  /** Moves what is unread to the start of a buffer. */
  #moveTo(target: Buffer): void {
    this.#buffer.copy(target, 0, this.#start, this.#filled);
    if (this.#buffer !== target) freeOwnMemory(this.#buffer);
    this.#buffer = target;
    this.#filled -= this.#start;
    this.#start = 0;
  }
}
