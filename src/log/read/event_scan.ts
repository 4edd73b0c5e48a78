/**
 * Reads the events in a snapshot in log order as ranges of stored lines, without parsing them. The
 * read buffer is also the send buffer.
 */
import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { eventLineEnd, LF, viewFor } from "../line/line_bytes.ts";
import { ScanMemory } from "./scan_memory.ts";
import { ScanTurn } from "./scan_turn.ts";
import { type LogFile, type LogSnapshot, readLines } from "./snapshot.ts";
import {
  type EventFilter,
  isHeaderLine,
  lineEventId,
  type LineMatcher,
  lineMatcher,
} from "../line/stored_line.ts";

/** A scan pauses after reading this much without a match, so that its caller can write. */
export const SCAN_PAUSE_BYTES: number = 4 * 1024 * 1024;

const EMPTY = Buffer.alloc(0);
const COMMA = 0x2c;

/** Estimated size of an event before any has been read. */
const BYTES_PER_EVENT = 1024;

export interface ScanOptions {
  /** Exclusive lower bound. It need not be the id of an existing event. */
  after: string | undefined;
  filter: EventFilter;
  limitEvents: number;
  /** The scan ends before an event that would exceed this limit, but returns at least one event. */
  limitBytes: number;
  /** Called after each file; the scan ends there if it returns true. */
  isEnough?: () => boolean;
  /** Returns the state of the client, called before each block. */
  client?: () => ClientState;
  /** Waits for the memory of a large block. @returns a function that releases it. */
  reserve?: (sizeBytes: number) => Promise<() => void>;
}

/**
 * Whether a client still waits for the response. "unknown" if only a write can tell: the scan then
 * pauses after each block. A scan whose client is "gone" ends.
 */
export type ClientState = "here" | "unknown" | "gone";

/** The options a client chooses; the service sets `limitBytes`. */
export type ReplayQuery = Omit<ScanOptions, "limitBytes" | "isEnough" | "client" | "reserve">;

export class EventScan {
  /** Durable frontier when the scan started; null for an empty log. */
  readonly snapshotThroughEventId: string | null;
  readonly #memory = new ScanMemory();
  readonly #turn = new ScanTurn();
  readonly #client: () => ClientState;
  /** Releases the memory of a large block. */
  #release: (() => void) | null = null;
  /** Why there was no memory for one. */
  #refusal: unknown = null;
  readonly #chunks: AsyncGenerator<Buffer, void>;
  readonly #after: string | undefined;
  readonly #matcher: LineMatcher | null;
  #remainingEvents: number;
  #remainingBytes: number;
  #lastEventId: string | null = null;
  #limitReached = false;
  #scannedBytes = 0;
  #takenEvents = 0;
  /** Whether lines at or before `after` may still follow. */
  #skipping: boolean;
  /** Last event of the file after which the scan ended early; null if it did not. */
  #endedAfter: string | null = null;

  constructor(snapshot: LogSnapshot, options: ScanOptions) {
    const { after, filter, limitEvents, limitBytes, isEnough = () => false } = options;
    const endsAfter = async ({ lastEventId }: LogFile) => {
      if (isEnough()) this.#endedAfter = lastEventId;
      await this.#turn.next();
      return this.#endedAfter !== null || this.#client() === "gone";
    };
    const wantedBytes = () => this.#expectedBytes();
    const reserve = async (sizeBytes: number) => {
      // The block before, of which nothing matched, is not used any more.
      this.#release?.();
      this.#release = null;
      try {
        this.#release = await options.reserve?.(sizeBytes) ?? null;
      } catch (error) {
        this.#refusal = error;
        throw error;
      }
    };
    const wanted = { after, filter, wantedBytes, memory: this.#memory, reserve };
    this.snapshotThroughEventId = snapshot.frontier;
    this.#chunks = readLines(snapshot.files, wanted, endsAfter);
    this.#after = after;
    this.#matcher = lineMatcher(filter);
    this.#client = options.client ?? (() => "here");
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
    if (this.#endedAfter !== null) return this.#endedAfter;
    const frontier = this.snapshotThroughEventId;
    const isBeyond = frontier === null || (this.#after !== undefined && this.#after > frontier);
    return isBeyond ? this.#after ?? null : frontier;
  }

  /** Whether a limit or `isEnough` ended the scan, perhaps before the end of the snapshot. */
  get limitReached(): boolean {
    return this.#limitReached || this.#endedAfter !== null;
  }

  /**
   * Returns the lines of the next events, joined by commas and valid until the next call; null at
   * the end, or if the client is gone. Returns an empty buffer after SCAN_PAUSE_BYTES without a
   * match, or after a block if the state of the client is unknown.
   */
  async next(): Promise<Buffer | null> {
    let events: Buffer | null = null;
    try {
      if (this.#release !== null) this.close();
      events = await this.#read();
      return events;
    } catch (error) {
      if (error !== this.#refusal || this.#takenEvents === 0) throw error;
      // A page that has events ends before a block for which there is no memory.
      this.#limitReached = true;
      return null;
    } finally {
      if (events === null) this.close();
    }
  }

  /** Hands over what is reserved for the last events returned. @returns how to release it. */
  takeReservation(): () => void {
    const release = this.#release;
    this.#release = null;
    return release ?? (() => {});
  }

  /** Releases the memory of the last events returned. */
  close(): void {
    this.#memory.release();
    this.#release?.();
    this.#release = null;
  }

  async #read(): Promise<Buffer | null> {
    let missedBytes = 0;
    // What the caller has written fails in the next loop if the client is gone.
    if (this.#client() === "unknown") await setImmediate();
    // Before the first block is read, since thousands may wait.
    if (this.#scannedBytes === 0) await this.#turn.next();
    while (!this.#limitReached && this.#client() !== "gone") {
      const chunk = (await this.#chunks.next()).value;
      if (!chunk) return null;
      await this.#turn.next();
      if (this.#client() === "gone") return null;
      this.#scannedBytes += chunk.length;
      const events = this.#takeEvents(chunk);
      if (events !== null) return this.#withoutRest(events, chunk);
      missedBytes += chunk.length;
      if (missedBytes >= SCAN_PAUSE_BYTES || this.#client() === "unknown") return EMPTY;
    }
    return null;
  }

  /** Copies a few events out of a large block, which they would keep in memory. */
  #withoutRest(events: Buffer, chunk: Buffer): Buffer {
    if (chunk.length <= READ_CHUNK_BYTES || events.length * 2 > chunk.length) return events;
    const copy = Buffer.from(events);
    this.close();
    return copy;
  }

  /**
   * Joins the wanted lines within `chunk` and returns them; null if there are none. Consecutive
   * lines are moved together, and the first run stays in place.
   */
  #takeEvents(chunk: Buffer): Buffer | null {
    const view = viewFor(chunk);
    let keptStart = 0;
    let keptEnd = 0;
    let runStart = 0;
    let lastLineBytes = 0;
    const keepRun = (runEnd: number) => {
      if (keptEnd === 0) keptStart = keptEnd = runStart;
      if (keptEnd !== runStart) chunk.copyWithin(keptEnd, runStart, runEnd);
      keptEnd += runEnd - runStart;
    };
    let lineStart = 0;
    while (lineStart < chunk.length && !this.#limitReached) {
      const isHeader = isHeaderLine(chunk, lineStart);
      const lineEnd = isHeader ? chunk.indexOf(LF, lineStart) + 1 : eventLineEnd(view, lineStart);
      if (!isHeader && this.#wants(chunk, lineStart) && this.#spend(lineEnd - lineStart)) {
        lastLineBytes = lineEnd - lineStart;
        chunk[lineEnd - 1] = COMMA;
      } else {
        if (runStart < lineStart) keepRun(lineStart);
        runStart = lineEnd;
      }
      lineStart = lineEnd;
    }
    if (runStart < lineStart) keepRun(lineStart);
    if (lastLineBytes === 0) return null;
    this.#lastEventId = lineEventId(chunk, keptEnd - lastLineBytes);
    return chunk.subarray(keptStart, keptEnd - 1);
  }

  #wants(chunk: Buffer, lineStart: number): boolean {
    if (this.#skipping) {
      if (lineEventId(chunk, lineStart) <= this.#after!) return false;
      this.#skipping = false;
    }
    return this.#matcher === null || this.#matcher(chunk, lineStart);
  }

  /** Estimates the size of the remaining events from the average size so far. */
  #expectedBytes(): number {
    const bytesPerEvent = this.#scannedBytes === 0
      ? BYTES_PER_EVENT
      : this.#scannedBytes / this.#takenEvents;
    return Math.min(this.#remainingBytes, this.#remainingEvents * bytesPerEvent);
  }

  /** Counts an event against the limits; returns false if it does not fit. */
  #spend(lineBytes: number): boolean {
    if (lineBytes > this.#remainingBytes && this.#takenEvents > 0) {
      this.#limitReached = true;
      return false;
    }
    this.#takenEvents += 1;
    this.#remainingBytes -= lineBytes;
    this.#remainingEvents -= 1;
    // A page with a large event ends, since the next one may wait for memory that this one holds.
    if (this.#remainingEvents === 0 || this.#remainingBytes <= 0) this.#limitReached = true;
    return true;
  }
}
