/**
 * Finds the last events in a log. A log can only be read forward, so this reads increasingly long
 * windows at its end until one contains enough events.
 */
import type { CommittedEvent } from "../../event.ts";
import { timeOf } from "./event_time.ts";

/** Reads the matching events committed since a time to the end of the log, page by page. */
export type ReadSince = (unixMs: number) => AsyncIterable<CommittedEvent[]>;

const FIRST_WINDOW_MS = 1000;
const WINDOW_GROWTH = 8;

/**
 * Returns the last `count` matching events, or all of them if there are fewer.
 * @param frontier id of the log's last event.
 */
export async function lastEvents(
  read: ReadSince,
  frontier: string,
  count: number,
): Promise<CommittedEvent[]> {
  const end = timeOf(frontier);
  for (let windowMs = FIRST_WINDOW_MS;; windowMs *= WINDOW_GROWTH) {
    let last: CommittedEvent[] = [];
    for await (const events of read(end - windowMs)) {
      last = [...last, ...events].slice(-count);
    }
    if (last.length === count || windowMs >= end) return last;
  }
}
