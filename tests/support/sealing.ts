/** Seals a closed log as `seal` does, or leaves it as an interrupted seal would. */
import assert from "node:assert/strict";
import type { SegmentEntry } from "../../src/log/segment/manifest.ts";
import type { SegmentBounds } from "../../src/log/segment/segment_writer.ts";
import type { Storage } from "../../src/log/storage/storage.ts";
import { openTestLog } from "./test_log.ts";

/** Limits so small that a segment holds one or two commits and a short history yields many. */
export const SMALL_SEGMENTS: SegmentBounds = { events: 3, bytes: 100_000 };

/** Seals all commits. @returns the new segments. */
export async function sealAll(
  storage: Storage,
  bounds?: SegmentBounds,
): Promise<SegmentEntry[]> {
  const sealed: SegmentEntry[] = [];
  const { log } = await openTestLog(storage);
  await log.seal((entry) => void sealed.push(entry), bounds && { bounds });
  await log.close();
  return sealed;
}

/** Settings for `seal()`, which then fails before the commit at which `isStopped` returns true. */
export function stopping(isStopped: () => boolean): { onEvents: () => void } {
  return {
    onEvents() {
      if (isStopped()) throw new Error("stopped");
    },
  };
}

/** Rotates the tail into a pending file without sealing it. */
export async function rotateOnly(storage: Storage): Promise<void> {
  const { log } = await openTestLog(storage);
  await assert.rejects(log.seal(() => {}, stopping(() => true)), /^Error: stopped$/);
  await log.close();
}
