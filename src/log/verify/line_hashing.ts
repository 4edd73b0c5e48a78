/**
 * Recomputing the hashes of event lines apart from the rest of a verification, which is how another
 * thread can do it: they are two thirds of the work, and no line needs any other for it.
 */
import type { Buffer } from "node:buffer";
import { sha256Hex } from "../../event/hash.ts";
import { isTextAt, viewOf } from "../line/line_bytes.ts";
import { EventHasher } from "../line/line_hashes.ts";
import { StoredEvent } from "../line/stored_event.ts";

/** Lines whose hashes are recomputed ahead of their check: two row groups of the largest size. */
export const HASH_AHEAD_BYTES_MAX: number = 16 * 1024 * 1024;

const LF = 0x0a;

/** Whole lines, and whether their hashes are known to be right. */
export interface HashedLines {
  lines: Buffer;
  /** When not, whoever takes the lines checks them, and finds what is wrong. */
  areHashed: boolean;
}

/** One that recomputes hashes. */
export interface LineHashing {
  /**
   * Recomputes content and event hashes of lines, each with its LF. Takes the memory of `lines`,
   * which begin where it does, and gives it back.
   */
  check(lines: Buffer): Promise<HashedLines>;
  close(): Promise<void>;
}

/** Whether all of these lines are events with the content and event hashes that they say. */
export function areHashesRight(lines: Buffer): boolean {
  const event = new StoredEvent();
  const hasher = new EventHasher();
  for (let start = 0; start < lines.length;) {
    const end = lines.indexOf(LF, start);
    if (end < 0 || !event.take(lines, start, end)) return false;
    const content = sha256Hex(viewOf(lines, event.payloadStart, event.payloadEnd));
    if (!isTextAt(lines, event.contentHashStart, content)) return false;
    if (!isTextAt(lines, event.eventHashStart, hasher.hash(event))) return false;
    start = end + 1;
  }
  return true;
}

/**
 * Gives items in their order, their lines hashed ahead of the one who takes them.
 * @param items each with lines in memory of their own; taken while there is room.
 */
export async function* hashAhead<Item extends { lines: Buffer }>(
  items: AsyncIterable<Item>,
  hashing: LineHashing,
): AsyncGenerator<Item & HashedLines, void> {
  const ahead: { hashed: Promise<Item & HashedLines>; bytes: number }[] = [];
  let aheadBytes = 0;
  for await (const item of items) {
    const bytes = item.lines.length;
    const hashed = hashing.check(item.lines).then((lines) => ({ ...item, ...lines }));
    // An error is for whoever takes the item, but it may never be taken.
    hashed.catch(() => {});
    ahead.push({ hashed, bytes });
    aheadBytes += bytes;
    while (aheadBytes > HASH_AHEAD_BYTES_MAX) {
      const first = ahead.shift()!;
      aheadBytes -= first.bytes;
      yield await first.hashed;
    }
  }
  for (const { hashed } of ahead) yield await hashed;
}
