/**
 * Runs a test twice: on a log that stays open, and on one that is reopened whenever the test calls
 * `settle`.
 */
import { test } from "node:test";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { replayAll } from "./stream_listing.ts";
import { submit, type SubmittedBatch } from "./submitted.ts";
import { openTestService } from "./test_service.ts";

export class RestartableLog {
  readonly storage: SimulatedDisk;
  #service: EventLogService;

  static async open(storage: SimulatedDisk = new SimulatedDisk()): Promise<RestartableLog> {
    const { service } = await openTestService(storage);
    return new RestartableLog(storage, service);
  }

  constructor(storage: SimulatedDisk, service: EventLogService) {
    this.storage = storage;
    this.#service = service;
  }

  get service(): EventLogService {
    return this.#service;
  }

  /** Closes the service and opens a new one on its files. */
  async restart(): Promise<void> {
    await this.#service.close();
    this.#service = (await openTestService(this.storage)).service;
  }

  submit(batch: SubmittedBatch): Promise<Outcome> {
    return submit(this.#service, batch);
  }

  /** Submits a batch that must be committed. @returns the id of its last event. */
  async commit(batch: SubmittedBatch): Promise<string> {
    const { body } = await this.submit(batch);
    if (body.status !== "committed") throw new Error(`not committed: ${JSON.stringify(body)}`);
    return body.last_event_id as string;
  }

  retire(source: string): Promise<Outcome> {
    return outcomeOf(this.#service.retire(source));
  }

  events(): Promise<CommittedEvent[]> {
    return replayAll(this.#service);
  }
}

type RestartTest = (log: RestartableLog, settle: () => Promise<void>) => Promise<void>;

/** A test that must pass whether or not `settle` restarts the service. */
export function testWithRestart(name: string, body: RestartTest): void {
  test(name, async () => {
    const log = await RestartableLog.open();
    await body(log, () => Promise.resolve());
    await log.service.close();
  });
  test(`${name}, after a restart`, async () => {
    const log = await RestartableLog.open();
    await body(log, () => log.restart());
    await log.service.close();
  });
}
