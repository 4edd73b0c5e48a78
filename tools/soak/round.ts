/**
 * One log, from its first event to its last. Clients and injected faults act on it, and at the
 * end the whole log is checked. The first violation ends the round.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { RuntimeName } from "../support/runtimes.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { describeExit } from "../support/program.ts";
import { Audit, type KnownHeads } from "./audit.ts";
import {
  ANSWER_TIMEOUT_MS,
  type ClientCounts,
  LOAD_MS_MAX,
  LOAD_MS_MIN,
  SAMPLE_MS,
  SOAK_CLIENTS,
} from "./bounds.ts";
import { Clients } from "./clients.ts";
import type { Disturbance, Scene } from "./disturbances.ts";
import { Ledger } from "./ledger.ts";
import { ServedLog } from "./served_log.ts";
import type { Tally } from "./tally.ts";
import { claim, claimInTime } from "./violation.ts";
import type { Vitals } from "./vitals.ts";
import { makeBatch, randomOf } from "./workload.ts";

/** Maximum number of acknowledged batches resent at the end. */
const REPEATS_MAX = 100;

/** The options that a soak and its rounds have in common. */
export interface LogOptions {
  /** An existing directory. */
  dir: string;
  seed: number;
  /** The service starts under a random one of these each time. */
  runtimes: readonly RuntimeName[];
  /** Default: SOAK_CLIENTS. */
  clients?: ClientCounts;
  /** Maximum duration of the load between two faults; default LOAD_MS_MAX. */
  loadMsMax?: number;
  /** Size at which the service seals its tail; default ROTATE_BYTES. */
  rotateBytes?: number;
  /** Ends the soak. */
  signal: AbortSignal;
}

/** The directory of a round must be empty. */
export interface RoundOptions extends LogOptions {
  /** Number of this round, which makes names unique across rounds. */
  number: number;
  /** Returns the next fault; null when the soak is over. */
  nextDisturbance: () => Disturbance | null;
  tally: Tally;
  vitals: Vitals;
}

/** Runs one round. @throws {Violation} or any other error, whichever occurs first. */
export async function runRound(options: RoundOptions): Promise<void> {
  const { signal, vitals, tally } = options;
  const failing = new AbortController();
  const fail = (error: unknown) => failing.abort(error);
  const giveUp = () => fail(signal.reason);
  signal.addEventListener("abort", giveUp, { once: true });
  const random = randomOf(options.seed, `round ${options.number}`);
  const served = await ServedLog.create({ ...options, random, onFailure: fail });
  const looking = setInterval(() => {
    try {
      if (served.pid !== null) vitals.look(served.pid);
    } catch (error) {
      fail(error);
    }
  }, SAMPLE_MS);
  try {
    signal.throwIfAborted();
    await new Round(options, served, random, failing).run();
  } catch (error) {
    // The first error is the cause. Later failures are consequences of it.
    throw failing.signal.aborted ? failing.signal.reason : error;
  } finally {
    fail(new Error("the round is over"));
    clearInterval(looking);
    signal.removeEventListener("abort", giveUp);
    await served.dispose();
  }
  tally.add("rounds");
}

class Round {
  readonly #options: RoundOptions;
  readonly #served: ServedLog;
  readonly #random: Random;
  readonly #failing: AbortController;
  readonly #ledger = new Ledger();
  readonly #clients: Clients;
  readonly #heads: KnownHeads = new Map();
  readonly #audit: Audit;

  constructor(options: RoundOptions, served: ServedLog, random: Random, failing: AbortController) {
    this.#options = options;
    this.#served = served;
    this.#random = random;
    this.#failing = failing;
    this.#audit = new Audit(this.#ledger, this.#heads);
    const { seed, number, tally } = options;
    const shared = { seed, number, tally, client: served.client, ledger: this.#ledger };
    this.#clients = new Clients(shared, failing);
  }

  async run(): Promise<void> {
    await this.#served.start();
    this.#clients.start(this.#options.clients ?? SOAK_CLIENTS);
    // On failure, abort the clients, which would otherwise wait for a dead service.
    await this.#disturb().catch((error) => this.#failing.abort(error));
    await claimInTime(this.#clients.end(), ANSWER_TIMEOUT_MS, "a client did not end");
    await this.#checkAll();
  }

  /** Runs until the faults end or the log reaches its maximum size. */
  async #disturb(): Promise<void> {
    const failing = this.#failing.signal;
    const { tally, nextDisturbance, loadMsMax = LOAD_MS_MAX } = this.#options;
    const scene: Scene = {
      served: this.#served,
      random: this.#random,
      tally,
      ledger: this.#ledger,
      heads: this.#heads,
      failing,
    };
    while (!this.#ledger.isFull) {
      const disturbance = nextDisturbance();
      if (disturbance === null) return;
      const loadMs = randomInteger(this.#random, Math.min(LOAD_MS_MIN, loadMsMax), loadMsMax);
      await delay(loadMs, undefined, { signal: failing });
      await disturbance(scene);
      await this.#clients.check(this.#audit);
    }
  }

  /** Audits the whole log again from the beginning, after the clients have stopped. */
  async #checkAll(): Promise<void> {
    // Until the service stops, a request that a client abandoned may still be committed.
    await this.#served.stop();
    await this.#served.start();
    await this.#clients.check(this.#audit);
    const { length: left } = this.#clients.load.observations;
    claim(left === 0, "some observations extend past the end of the log");
    await this.#repeatSome();
    await this.#served.stop();
    await this.#verifyChain(this.#audit.length);
    await this.#served.start();
    const audit = new Audit(this.#ledger, this.#heads);
    await this.#clients.check(audit);
    audit.checkHeads();
    claim(audit.length === this.#audit.length, "the log changed while it was idle");
    await this.#served.stop();
  }

  /** Resends acknowledged batches, including sealed ones. Each must return its original receipt. */
  async #repeatSome(): Promise<void> {
    const { acknowledged } = this.#ledger;
    const stride = Math.ceil(acknowledged.length / REPEATS_MAX);
    for (let place = 0; place < acknowledged.length; place += stride) {
      const entry = acknowledged[place]!;
      if (entry.batchId.endsWith("lineage")) continue;
      const batch = makeBatch(this.#options.seed, entry.source, entry.batchId);
      const receipt = await this.#served.client.append(batch, { signal: this.#failing.signal });
      this.#ledger.acknowledge(entry, receipt);
      this.#options.tally.add("duplicates");
    }
  }

  async #verifyChain(events: number): Promise<void> {
    const exit = await this.#served.run(["verify", "--chain"]);
    claim(exit.code === 0, `verify --chain: ${exit.stdout} ${describeExit(exit)}`);
    this.#options.tally.add("verifies");
    const { events_checked: checked, orphans, remnants } = JSON.parse(exit.stdout);
    claim(checked === events, `verify --chain checked ${checked} events, expected ${events}`);
    const left = [...orphans, ...remnants];
    claim(left.length === 0, `after a clean shutdown verify reports ${left.join(", ")}`);
  }
}
