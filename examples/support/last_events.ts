/**
 * Finds the last events in a log. A log can only be read forward, so this reads increasingly long
 * windows at its end until one contains enough events.
 */
import type { CommittedEvent } from "../../event.ts";
import { positionAt, timeOf } from "./event_time.ts";

/** Reads the matching events after a position to the end of the log, page by page. */
export type ReadAfter = (after: string) => AsyncIterable<CommittedEvent[]>;

const FIRST_WINDOW_MS = 1000;
const WINDOW_GROWTH = 8;

/**
 * Returns the last `count` matching events, or all of them if there are fewer.
 * @param frontier id of the log's last event.
 */
export async function lastEvents(
  read: ReadAfter,
  frontier: string,
  count: number,
): Promise<CommittedEvent[]> {
  const end = timeOf(frontier);
  for (let windowMs = FIRST_WINDOW_MS;; windowMs *= WINDOW_GROWTH) {
    let last: CommittedEvent[] = [];
    for await (const events of read(positionAt(end - windowMs))) {
      last = [...last, ...events].slice(-count);
    }
    if (last.length === count || windowMs >= end) return last;
  }
}
