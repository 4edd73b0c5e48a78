/** A service over an in-memory log, with the outcomes of its mutations. */
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { replayAll } from "./stream_listing.ts";
import { submit, type SubmittedBatch } from "./submitted.ts";
import { openTestService } from "./test_service.ts";

export class OpenLog {
  readonly storage: SimulatedDisk;
  readonly service: EventLogService;

  static async open(storage: SimulatedDisk = new SimulatedDisk()): Promise<OpenLog> {
    const { service } = await openTestService(storage);
    return new OpenLog(storage, service);
  }

  private constructor(storage: SimulatedDisk, service: EventLogService) {
    this.storage = storage;
    this.service = service;
  }

  submit(batch: SubmittedBatch): Promise<Outcome> {
    return submit(this.service, batch);
  }

  /** Submits a batch that must be committed. @returns the id of its last event. */
  async commit(batch: SubmittedBatch): Promise<string> {
    const { body } = await this.submit(batch);
    if (body.status !== "committed") throw new Error(`not committed: ${JSON.stringify(body)}`);
    return body.last_event_id as string;
  }

  retire(source: string): Promise<Outcome> {
    return outcomeOf(this.service.retire(source));
  }

  events(): Promise<CommittedEvent[]> {
    return replayAll(this.service);
  }
}
