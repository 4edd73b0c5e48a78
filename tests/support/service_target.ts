/** Histories against the service in this process. */
import { type DisturbedService, KilledError } from "./disturbed_service.ts";
import type { HistoryTarget } from "./history_target.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { ALL_STREAMS, replayAll } from "./stream_listing.ts";
import { submit } from "./submitted.ts";

export function serviceTarget(service: DisturbedService): HistoryTarget {
  return {
    append: (batch) => unlessKilled(submit(service, batch)),
    retire: (source) => unlessKilled(outcomeOf(service.retire(source))),
    events: () => replayAll(service),
    streams: async () => (await service.streams(ALL_STREAMS)).streams,
    restart: () => service.restart(),
    kill: () => service.kill(),
    seal: () => service.seal(),
    failDisk: (how) => service.failDisk(how),
  };
}

async function unlessKilled(outcome: Promise<Outcome>): Promise<Outcome | null> {
  try {
    return await outcome;
  } catch (error) {
    if (error instanceof KilledError) return null;
    throw error;
  }
}
