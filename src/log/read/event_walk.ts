/** Visits every event of the files of a snapshot. */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { ScanMemory } from "./scan_memory.ts";
import { type LogFile, readLines } from "./snapshot.ts";
import { isHeaderLine, lineEventId } from "../line/stored_line.ts";

const LF = 0x0a;

/**
 * Calls `visit` with the start of each event's line, in log order, until it returns false. Some
 * events up to `after` may come first.
 */
export async function walkEvents(
  files: readonly LogFile[],
  after: string | undefined,
  visit: (chunk: Buffer, lineStart: number) => boolean,
): Promise<void> {
  const memory = new ScanMemory();
  const wanted = { after, filter: {}, firstReadBytes: READ_CHUNK_BYTES, memory };
  for await (const chunk of readLines(files, wanted)) {
    if (!visitLines(chunk, visit)) break;
  }
  memory.release();
}

function visitLines(
  chunk: Buffer,
  visit: (chunk: Buffer, lineStart: number) => boolean,
): boolean {
  for (let start = 0; start < chunk.length; start = chunk.indexOf(LF, start) + 1) {
    if (!isHeaderLine(chunk, start) && !visit(chunk, start)) return false;
  }
  return true;
}

/** Whether files hold the event with that id. */
export async function hasEvent(files: readonly LogFile[], eventId: string): Promise<boolean> {
  if (files.some((file) => file.lastEventId === eventId)) return true;
  let found = false;
  // The shortened id sorts right before the whole one, so that the walk visits the event.
  await walkEvents(files, eventId.slice(0, -1), (chunk, start) => {
    const id = lineEventId(chunk, start);
    found = id === eventId;
    return id < eventId;
  });
  return found;
}
