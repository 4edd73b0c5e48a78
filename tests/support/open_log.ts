/** A service over an in-memory log, with the outcomes of its mutations. */
import { SimulatedDisk } from "./simulated_disk.ts";
import { outcomeOf } from "./outcome.ts";
import { replayAll } from "./stream_listing.ts";
import { submit, type SubmittedBatch } from "./submitted.ts";
import { openTestService } from "./test_service.ts";

export type OpenLog = Awaited<ReturnType<typeof openLog>>;

export async function openLog(storage: SimulatedDisk = new SimulatedDisk()) {
  const { service } = await openTestService(storage);
  return {
    storage,
    service,
    submit: (batch: SubmittedBatch) => submit(service, batch),

    /** Submits a batch that must be committed. @returns the id of its last event. */
    async commit(batch: SubmittedBatch): Promise<string> {
      const { body } = await submit(service, batch);
      if (body.status !== "committed") throw new Error(`not committed: ${JSON.stringify(body)}`);
      return body.last_event_id as string;
    },

    retire: (source: string) => outcomeOf(service.retire(source)),
    events: () => replayAll(service),
  };
}
