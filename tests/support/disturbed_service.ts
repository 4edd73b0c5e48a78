/**
 * A service over a disk in memory that is slow, fails, and forgets what was not synced; it can be
 * started again and killed under the hands of its callers. Mutations wait while it starts.
 */
import type { PreparedBatch, Receipt, RetirementReceipt } from "../../src/event/types.ts";
import type { EventLog, EventLogService, Follow, Replay } from "../../src/service/event_log.ts";
import type { ReplayQuery } from "../../src/log/read/event_scan.ts";
import type { StreamsPage, StreamsQuery } from "../../src/service/streams.ts";
import type { DiskFailure } from "./history_target.ts";
import { anyOf } from "./simulated_crash.ts";
import { type Fault, type Operation, SimulatedDisk } from "./simulated_disk.ts";
import { pause } from "./pause.ts";
import { type Random, randomInteger } from "../../tools/support/random.ts";
import { sealAll, SMALL_SEGMENTS } from "./sealing.ts";
import { openTestService } from "./test_service.ts";

/** How long an operation of the disk takes at most, in turns of other work. */
const DISK_TURNS_MAX = 12;

/** The service was killed before it had an answer. */
export class KilledError extends Error {
  override name = "KilledError";
}

export class DisturbedService implements EventLog {
  readonly #random: Random;
  #storage: SimulatedDisk;
  #service: EventLogService;
  #starting: Promise<void> | null = null;
  #killed = neverUnhandled();
  #diskFailure: DiskFailure | null = null;

  static async open(random: Random): Promise<DisturbedService> {
    const storage = new SimulatedDisk();
    const { service } = await openTestService(storage);
    return new DisturbedService(random, storage, service);
  }

  constructor(random: Random, storage: SimulatedDisk, service: EventLogService) {
    this.#random = random;
    this.#storage = storage;
    this.#service = service;
    storage.hook = (operation) => this.#disturb(operation);
  }

  append(batch: PreparedBatch): Promise<Receipt> {
    return this.#mutate((service) => service.append(batch));
  }

  retire(source: string): Promise<RetirementReceipt> {
    return this.#mutate((service) => service.retire(source));
  }

  replay(query: ReplayQuery): Replay {
    return this.#service.replay(query);
  }

  follow(query: ReplayQuery): Follow {
    return this.#service.follow(query);
  }

  streams(query: StreamsQuery): Promise<StreamsPage> {
    return this.#service.streams(query);
  }

  /** Shuts the service down in order and starts it again. */
  restart(): Promise<void> {
    const closing = this.#service;
    this.#diskFailure = null;
    return this.#start(async () => {
      await closing.close();
      return this.#storage;
    });
  }

  /** Shuts the service down, seals the log into segments of some size, and starts it again. */
  seal(): Promise<void> {
    const closing = this.#service;
    this.#diskFailure = null;
    return this.#start(async () => {
      await closing.close();
      await sealAll(this.#storage, this.#random() < 0.5 ? SMALL_SEGMENTS : undefined);
      return this.#storage;
    });
  }

  /** Kills the service and its machine, and starts it again on what the disk kept. */
  kill(): Promise<void> {
    this.#killed.reject(new KilledError("killed"));
    this.#killed = neverUnhandled();
    const left = this.#storage.crash(anyOf(this.#random));
    return this.#start(() => Promise.resolve(left));
  }

  /** Makes the next write or fsync fail. */
  failDisk(how: DiskFailure): void {
    this.#diskFailure = how;
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  async #mutate<Answer>(call: (service: EventLogService) => Promise<Answer>): Promise<Answer> {
    while (this.#starting !== null) await this.#starting;
    return await Promise.race([call(this.#service), this.#killed.promise]);
  }

  async #start(stop: () => Promise<SimulatedDisk>): Promise<void> {
    this.#starting = this.#open(stop);
    await this.#starting;
  }

  async #open(stop: () => Promise<SimulatedDisk>): Promise<void> {
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

/** A promise to reject, also when nobody waits for it. */
function neverUnhandled(): PromiseWithResolvers<never> {
  const resolvers = Promise.withResolvers<never>();
  resolvers.promise.catch(() => {});
  return resolvers;
}
