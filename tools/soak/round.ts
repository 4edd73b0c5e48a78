/**
 * One log, from its first event to its last. Clients and injected faults act on it, and at the
 * end the whole log is checked. The first violation ends the round.
 */
import { setTimeout as delay } from "node:timers/promises";
import { randomInteger } from "../support/random.ts";
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
import { ServedLog, type ServedLogOptions } from "./served_log.ts";
import type { Tally } from "./tally.ts";
import { claim, claimInTime } from "./violation.ts";
import type { Vitals } from "./vitals.ts";
import { makeBatch, randomOf } from "./workload.ts";

/** Maximum number of acknowledged batches resent at the end. */
const REPEATS_MAX = 100;

/** The options that a soak and its rounds have in common. */
export interface LogOptions extends Omit<ServedLogOptions, "random" | "onFailure"> {
  seed: number;
  /** Default: SOAK_CLIENTS. */
  clients?: ClientCounts;
  /** Maximum duration of the load between two faults; default LOAD_MS_MAX. */
  loadMsMax?: number;
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

/**
 * Runs one round. @returns whether the soak is over, rather than the log at its maximum size.
 * @throws {Violation} or any other error, whichever occurs first.
 */
export async function runRound(options: RoundOptions): Promise<boolean> {
  const { number, seed, signal, tally, vitals } = options;
  const failing = new AbortController();
  const fail = (error: unknown) => failing.abort(error);
  signal.addEventListener("abort", () => fail(signal.reason), { signal: failing.signal });
  const random = randomOf(seed, `round ${number}`);
  const served = await ServedLog.create({ ...options, random, onFailure: fail });
  const looking = setInterval(() => {
    try {
      if (served.pid !== null) vitals.look(served.pid);
    } catch (error) {
      fail(error);
    }
  }, SAMPLE_MS);
  const ledger = new Ledger();
  const clients = new Clients({ seed, number, tally, client: served.client, ledger }, failing);
  const scene: Scene = { served, random, tally, ledger, failing: failing.signal };
  const heads: KnownHeads = new Map();
  const audit = new Audit(ledger, heads);
  try {
    signal.throwIfAborted();
    await served.start();
    clients.start(options.clients ?? SOAK_CLIENTS);
    // On failure, abort the clients, which would otherwise wait for a dead service.
    const isOver = await disturb(options, scene, () => clients.check(audit)).catch(fail);
    await claimInTime(clients.end(), ANSWER_TIMEOUT_MS, "a client did not end");
    await stopAndSettle(scene, seed, clients, audit);
    const whole = new Audit(ledger, heads);
    await clients.check(whole);
    whole.checkHeads();
    claim(whole.length === audit.length, "the log changed while it was idle");
    await served.stop();
    tally.add("rounds");
    return isOver === true;
  } catch (error) {
    // The first error is the cause. Later failures are consequences of it.
    throw failing.signal.aborted ? failing.signal.reason : error;
  } finally {
    fail(new Error("the round is over"));
    clearInterval(looking);
    await served.dispose();
  }
}

/** Runs until the faults end or the log reaches its maximum size. @returns whether they ended. */
async function disturb(
  { nextDisturbance, loadMsMax = LOAD_MS_MAX }: RoundOptions,
  scene: Scene,
  check: () => Promise<void>,
): Promise<boolean> {
  const { ledger, random, failing } = scene;
  while (!ledger.isFull) {
    const disturbance = nextDisturbance();
    if (disturbance === null) return true;
    const loadMs = randomInteger(random, Math.min(LOAD_MS_MIN, loadMsMax), loadMsMax);
    await delay(loadMs, undefined, { signal: failing });
    await disturbance(scene);
    await check();
  }
  return false;
}

/** Checks the log after the clients have stopped, and restarts the service. */
async function stopAndSettle(
  scene: Scene,
  seed: number,
  clients: Clients,
  audit: Audit,
): Promise<void> {
  const { served } = scene;
  // Until the service stops, a request that a client abandoned may still be committed.
  await served.stop();
  await served.start();
  await clients.check(audit);
  const { length: left } = clients.load.observations;
  claim(left === 0, "some observations extend past the end of the log");
  await repeatSome(scene, seed);
  await served.stop();
  await verifyChain(scene, audit.length);
  await served.start();
}

/** Resends acknowledged batches, including sealed ones. Each must return its original receipt. */
async function repeatSome(
  { served, ledger, tally, failing: signal }: Scene,
  seed: number,
): Promise<void> {
  const { acknowledged } = ledger;
  const stride = Math.ceil(acknowledged.length / REPEATS_MAX);
  for (let place = 0; place < acknowledged.length; place += stride) {
    const entry = acknowledged[place]!;
    if (entry.batchId.endsWith("lineage")) continue;
    const batch = makeBatch(seed, entry.source, entry.batchId);
    ledger.acknowledge(entry, await served.client.append(batch, { signal }));
    tally.add("duplicates");
  }
}

async function verifyChain({ served, tally }: Scene, events: number): Promise<void> {
  const exit = await served.run(["verify", "--chain"]);
  claim(exit.code === 0, `verify --chain: ${exit.stdout} ${describeExit(exit)}`);
  tally.add("verifies");
  const { events_checked: checked, orphans, remnants } = JSON.parse(exit.stdout);
  claim(checked === events, `verify --chain checked ${checked} events, expected ${events}`);
  const left = [...orphans, ...remnants];
  claim(left.length === 0, `after a clean shutdown verify reports ${left.join(", ")}`);
}
