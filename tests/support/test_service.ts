/** Opens services with a clock and randomness that repeat. */
import type { Storage } from "../../src/log/storage.ts";
import { type EventLogService, openEventLog } from "../../src/service/event_log_service.ts";
import { testTime } from "./test_log.ts";

export async function openTestService(
  storage: Storage,
): Promise<{ service: EventLogService; reports: string[] }> {
  const reports: string[] = [];
  const report = (line: string) => void reports.push(line);
  return { service: await openEventLog({ storage, ...testTime(), report }), reports };
}
