/** The service in this process, over a disk in memory that is slow, fails, and forgets what was not synced. */
import type { StreamSummary } from "../../src/event/types.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLogService } from "../../src/service/event_log_service.ts";
import type { DiskFailure, HistoryTarget } from "./history_target.ts";
import { type Fault, MemoryStorage, type Operation } from "./memory_storage.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { pause } from "./pause.ts";
import { type Random, randomInteger, randomItem } from "./random.ts";
import { sealAll, SMALL_SEGMENTS } from "./sealing.ts";
import { ALL_STREAMS, replayAll } from "./stream_listing.ts";
import { submit, type SubmittedBatch } from "./submitted.ts";
import { openTestService } from "./test_service.ts";

/** How long an operation of the disk takes at most, in turns of other work. */
const DISK_TURNS_MAX = 12;

export class ServiceTarget implements HistoryTarget {
  readonly #random: Random;
  #storage: MemoryStorage;
  #service: EventLogService;
  #starting: Promise<void> | null = null;
  #killed = Promise.withResolvers<null>();
  #diskFailure: DiskFailure | null = null;

  static async open(random: Random): Promise<ServiceTarget> {
    const storage = new MemoryStorage();
    const { service } = await openTestService(storage);
    return new ServiceTarget(random, storage, service);
  }

  constructor(random: Random, storage: MemoryStorage, service: EventLogService) {
    this.#random = random;
    this.#storage = storage;
    this.#service = service;
    storage.hook = (operation) => this.#disturb(operation);
  }

  append(batch: SubmittedBatch): Promise<Outcome | null> {
    return this.#mutate((service) => submit(service, batch));
  }

  retire(source: string): Promise<Outcome | null> {
    return this.#mutate((service) => outcomeOf(service.retire(source)));
  }

  events(): Promise<CommittedEvent[]> {
    return replayAll(this.#service);
  }

  async streams(): Promise<StreamSummary[]> {
    return (await this.#service.streams(ALL_STREAMS)).streams;
  }

  restart(): Promise<void> {
    const closing = this.#service;
    this.#diskFailure = null;
    return this.#start(async () => {
      await closing.close();
      return this.#storage;
    });
  }

  seal(): Promise<void> {
    const closing = this.#service;
    this.#diskFailure = null;
    return this.#start(async () => {
      await closing.close();
      await sealAll(this.#storage, this.#random() < 0.5 ? SMALL_SEGMENTS : undefined);
      return this.#storage;
    });
  }

  kill(): Promise<void> {
    this.#killed.resolve(null);
    this.#killed = Promise.withResolvers<null>();
    const keptBytes = () =>
      randomItem(this.#random, [0, randomInteger(this.#random, 0, 2000), Infinity]);
    const left = this.#storage.crash({ keptBytes });
    return this.#start(() => Promise.resolve(left));
  }

  failDisk(how: DiskFailure): void {
    this.#diskFailure = how;
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  async #mutate(call: (service: EventLogService) => Promise<Outcome>): Promise<Outcome | null> {
    while (this.#starting !== null) await this.#starting;
    return await Promise.race([call(this.#service), this.#killed.promise]);
  }

  async #start(stop: () => Promise<MemoryStorage>): Promise<void> {
    this.#starting = this.#open(stop);
    await this.#starting;
  }

  async #open(stop: () => Promise<MemoryStorage>): Promise<void> {
    this.#storage = await stop();
    this.#diskFailure = null;
    this.#service = (await openTestService(this.#storage)).service;
    this.#storage.hook = (operation) => this.#disturb(operation);
    this.#starting = null;
  }

  async #disturb({ kind }: Operation): Promise<Fault | null> {
    await pause(this.#random, DISK_TURNS_MAX);
    const failure = this.#diskFailure;
    if (failure === "no_room" && kind === "write") {
      this.#diskFailure = null;
      return { errno: "ENOSPC", writtenBytes: randomInteger(this.#random, 0, 500) };
    }
    if (failure === "failed_sync" && kind === "sync") {
      this.#diskFailure = null;
      return { errno: "EIO" };
    }
    return null;
  }
}
