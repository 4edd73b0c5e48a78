/** Finds the end of a log. */
import type { EventLogClient } from "../../mod.ts";

/** Returns the id of the log's last event; null if there is none. */
export async function frontierOf(client: EventLogClient): Promise<string | null> {
  const { value: page } = await client.replayPages({ limit: 1 }).next();
  return page?.snapshotThroughEventId ?? null;
}
