/** Opens services with a deterministic clock and deterministic randomness. */
import type { Storage } from "../../src/log/storage/storage.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { testTime } from "./test_log.ts";
import { openWatchedService, type SealingOn } from "./watched_log.ts";

export async function openTestService(
  storage: Storage,
  sealingOn?: SealingOn,
): Promise<{ service: EventLogService; reports: string[] }> {
  const reports: string[] = [];
  const report = (line: string) => void reports.push(line);
  const options = { storage, ...testTime(), report };
  return { service: await openWatchedService(options, sealingOn), reports };
}
