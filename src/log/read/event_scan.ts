/**
 * Reads the events of a snapshot in log order as ranges of stored lines, without parsing them. The
 * read buffer is also the send buffer.
 */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { viewFor } from "../line/line_bytes.ts";
import { ScanMemory } from "./scan_memory.ts";
import { type LogSnapshot, readLines } from "./snapshot.ts";
import {
  type EventFilter,
  eventLineEnd,
  isHeaderLine,
  lineEventId,
  type LineMatcher,
  lineMatcher,
} from "../line/stored_line.ts";

/** A scan without matches pauses after reading this much, since its client may be gone. */
export const SCAN_PAUSE_BYTES: number = 4 * 1024 * 1024;

const EMPTY = Buffer.alloc(0);
const LF = 0x0a;
const COMMA = 0x2c;

/** Estimated event size, which determines the first read of a small page. */
const FIRST_READ_BYTES_PER_EVENT = 1024;
const FIRST_READ_BYTES_MIN = 16 * 1024;

export interface ScanOptions {
  /** Exclusive lower bound, any canonical event id. */
  after: string | undefined;
  filter: EventFilter;
  limitEvents: number;
  /** The scan ends before an event that would exceed it, but returns at least one event. */
  limitBytes: number;
}

/** The options a client chooses; the service sets `limitBytes`. */
export type ReplayQuery = Omit<ScanOptions, "limitBytes">;

export class EventScan {
  /** Durable frontier when the scan started; null for an empty log. */
  readonly snapshotThroughEventId: string | null;
  readonly #memory = new ScanMemory();
  readonly #chunks: AsyncGenerator<Buffer, void>;
  readonly #after: string | undefined;
  readonly #matcher: LineMatcher | null;
  #remainingEvents: number;
  #remainingBytes: number;
  #lastEventId: string | null = null;
  #limitReached = false;
  #anyEvent = false;
  /** Whether lines at or before `after` may still follow. */
  #skipping: boolean;

  constructor(snapshot: LogSnapshot, { after, filter, limitEvents, limitBytes }: ScanOptions) {
    const firstReadBytes = Math.min(
      READ_CHUNK_BYTES,
      Math.max(FIRST_READ_BYTES_MIN, limitEvents * FIRST_READ_BYTES_PER_EVENT),
    );
    const wanted = { after, filter, firstReadBytes, memory: this.#memory };
    this.snapshotThroughEventId = snapshot.frontier;
    this.#chunks = readLines(snapshot.files, wanted);
    this.#after = after;
    this.#matcher = lineMatcher(filter);
    this.#remainingEvents = limitEvents;
    this.#remainingBytes = limitBytes;
    this.#skipping = after !== undefined;
  }

  /** Last event returned; null if none. */
  get lastEventId(): string | null {
    return this.#lastEventId;
  }

  /** `after` for the next scan, valid once this one has ended. */
  get nextAfter(): string | null {
    if (this.#limitReached) return this.#lastEventId;
    const frontier = this.snapshotThroughEventId;
    const isBeyond = frontier === null || (this.#after !== undefined && this.#after > frontier);
    return isBeyond ? this.#after ?? null : frontier;
  }

  /** Whether a limit ended the scan before the end of the snapshot. */
  get limitReached(): boolean {
    return this.#limitReached;
  }

  /**
   * Returns the lines of the next events, joined by commas and valid until the next call; null at
   * the end. Returns no bytes after SCAN_PAUSE_BYTES without a match, so the caller can give up.
   */
  async next(): Promise<Buffer | null> {
    let missedBytes = 0;
    while (!this.#limitReached) {
      const { value: chunk } = await this.#chunks.next();
      if (chunk === undefined) break;
      const events = this.#takeEvents(chunk);
      if (events !== null) return events;
      missedBytes += chunk.length;
      if (missedBytes >= SCAN_PAUSE_BYTES) return EMPTY;
    }
    this.#memory.release();
    return null;
  }

  /** Moves the wanted lines to the front of `chunk` and returns them; null if there are none. */
  #takeEvents(chunk: Buffer): Buffer | null {
    let keptBytes = 0;
    let lastKeptStart = 0;
    let lineStart = 0;
    const view = viewFor(chunk);
    while (lineStart < chunk.length && !this.#limitReached) {
      if (isHeaderLine(chunk, lineStart)) {
        lineStart = chunk.indexOf(LF, lineStart) + 1;
        continue;
      }
      const lineEnd = eventLineEnd(view, lineStart);
      if (this.#wants(chunk, lineStart) && this.#spend(lineEnd - lineStart)) {
        lastKeptStart = keptBytes;
        if (keptBytes !== lineStart) chunk.copyWithin(keptBytes, lineStart, lineEnd);
        keptBytes += lineEnd - lineStart;
        chunk[keptBytes - 1] = COMMA;
      }
      lineStart = lineEnd;
    }
    if (keptBytes === 0) return null;
    this.#lastEventId = lineEventId(chunk, lastKeptStart);
    return chunk.subarray(0, keptBytes - 1);
  }

  #wants(chunk: Buffer, lineStart: number): boolean {
    if (this.#skipping) {
      if (lineEventId(chunk, lineStart) <= this.#after!) return false;
      this.#skipping = false;
    }
    return this.#matcher === null || this.#matcher(chunk, lineStart);
  }

  /** Counts an event against the limits; returns false if it does not fit. */
  #spend(lineBytes: number): boolean {
    if (lineBytes > this.#remainingBytes && this.#anyEvent) {
      this.#limitReached = true;
      return false;
    }
    this.#anyEvent = true;
    this.#remainingBytes -= lineBytes;
    this.#remainingEvents -= 1;
    if (this.#remainingEvents === 0) this.#limitReached = true;
    return true;
  }
}
