/**
 * The log under test, on the disk of a virtual machine that is power-cycled while clients use the
 * log. Clients retry while the machine is down.
 */
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { Fetch } from "../../src/client/unix_fetch.ts";
import { ANSWER_TIMEOUT_MS } from "../soak/bounds.ts";
import { Clients } from "../soak/clients.ts";
import type { Ledger } from "../soak/ledger.ts";
import { patientClient } from "../soak/patient_client.ts";
import type { Tally } from "../soak/tally.ts";
import { claim, Violation } from "../soak/violation.ts";
import { LIGHT_STEPS } from "../soak/workload.ts";
import { type DiskOptions, type Machine, resume, type SavedMachine } from "./machine.ts";

/** Printed by the guest once the service accepts requests. */
const READY_TEXT = "powercut: ready";
const RETRY_MS_MAX = 100;
/** A large batch may be interrupted by many power cuts before it gets its receipt. */
const WRITE_TIMEOUT_MS = 3_600_000;

export const WRITERS = 8;

/** The options that power cuts, disk states and disk errors have in common. */
export interface CampaignOptions {
  saved: SavedMachine;
  /** Number of cuts, states or errors. */
  count: number;
  seed: number;
  /** Directory for disk images, preferably in memory. */
  folder: string;
  tally: Tally;
  report: (line: string) => void;
}

export class PoweredLog {
  /** Shared by all clients of this log. */
  readonly client: EventLogClient;
  /** Like `client`, but never retries. */
  readonly impatient: EventLogClient;
  readonly #saved: SavedMachine;
  readonly #disk: DiskOptions;
  #machine: Machine | null = null;

  constructor(saved: SavedMachine, disk: DiskOptions) {
    this.#saved = saved;
    this.#disk = disk;
    const fetchHere: Fetch = (input, init) => {
      const { pathname, search } = new URL(`${input}`, "http://localhost");
      return fetch(`http://127.0.0.1:${this.#machine?.servicePort}${pathname}${search}`, init);
    };
    this.client = patientClient(fetchHere, RETRY_MS_MAX, {
      writeTimeoutMs: WRITE_TIMEOUT_MS,
    });
    this.impatient = new EventLogClient(fetchHere, {
      attemptsMax: 1,
      writeTimeoutMs: ANSWER_TIMEOUT_MS,
    });
  }

  /** Starts the machine and waits for a response. @throws {Violation} if there is none. */
  async start(): Promise<void> {
    this.#machine = await resume(this.#saved, this.#disk);
    await this.machine.untilPrinted(READY_TEXT);
  }

  /** Cuts the power. @throws {Violation} if the machine or the service has already exited. */
  async cutPower(): Promise<void> {
    const { machine } = this;
    claim(machine.isRunning, `the machine exited unexpectedly: ${machine.console}`);
    await machine.cutPower();
  }

  /** The machine since the last start. */
  get machine(): Machine {
    return this.#machine!;
  }

  /** Console output since the last start. */
  get console(): string {
    return this.#machine?.console ?? "";
  }

  async dispose(): Promise<void> {
    await this.#machine?.cutPower();
  }
}

/** A disk image on which clients use a log. */
export interface LoadedDisk extends DiskOptions {
  /** Number of the log, which makes client names unique. */
  number: number;
  ledger: Ledger;
  followers: number;
}

/**
 * Starts a log on a disk, and its clients, which `use` must end. @throws {Violation} for the first
 * error of `use` or of a client.
 */
export async function underLoad(
  { saved, seed, tally }: CampaignOptions,
  { number, ledger, followers, ...disk }: LoadedDisk,
  use: (log: PoweredLog, clients: Clients) => Promise<void>,
): Promise<void> {
  const log = new PoweredLog(saved, disk);
  const failing = new AbortController();
  const shared = { seed, number, client: log.client, ledger, tally, steps: LIGHT_STEPS };
  const clients = new Clients(shared, failing);
  try {
    await log.start();
    clients.start({ writers: WRITERS, readers: 0, followers });
    await use(log, clients);
  } catch (error) {
    const cause = failing.signal.aborted ? failing.signal.reason : error;
    const where = `the disk is ${disk.disk}; console: ${log.console}`;
    throw new Violation(`${(cause as Error).message}; ${where}`, { cause });
  } finally {
    failing.abort(new Error("the load is over"));
    await log.dispose();
  }
}
