/** Reads where a log ends. */
import type { EventLogClient } from "../../mod.ts";

/** Id of the last event of the log; null if there is none. */
export async function frontierOf(client: EventLogClient): Promise<string | null> {
  const { value: page } = await client.replayPages({ limit: 1 }).next();
  return page?.snapshotThroughEventId ?? null;
}
