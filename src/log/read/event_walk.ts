/** Visits every event in a file. */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { LF } from "../line/line_bytes.ts";
import { isHeaderLine } from "../line/stored_line.ts";
import { ScanMemory } from "./scan_memory.ts";
import { type LogFile, readLines } from "./snapshot.ts";

/** Calls `visit` with the start of each event line, in log order, until it returns false. */
export async function walkEvents(
  file: LogFile,
  visit: (chunk: Buffer, lineStart: number) => boolean,
): Promise<void> {
  const memory = new ScanMemory();
  const wanted = { after: undefined, filter: {}, wantedBytes: () => READ_CHUNK_BYTES, memory };
  for await (const chunk of readLines([file], wanted)) {
    for (let start = 0; start < chunk.length; start = chunk.indexOf(LF, start) + 1) {
      if (!isHeaderLine(chunk, start) && !visit(chunk, start)) return;
    }
  }
  memory.release();
}
