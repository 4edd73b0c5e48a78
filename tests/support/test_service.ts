/** Opens services with a deterministic clock and deterministic randomness. */
import type { Storage } from "../../src/log/storage/storage.ts";
import { type EventLogService, openEventLog } from "../../src/service/event_log.ts";
import { type SealingOn, testOptions } from "./test_log.ts";

export async function openTestService(
  storage: Storage,
  sealingOn?: SealingOn,
): Promise<{ service: EventLogService; reports: string[] }> {
  const { options, reports } = testOptions(storage, sealingOn);
  return { service: await openEventLog(options), reports };
}
