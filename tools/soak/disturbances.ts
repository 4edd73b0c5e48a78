/**
 * Faults injected into the service under load. Each ends with the service running. The audit checks
 * whether the log is still correct.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import {
  type CliExit,
  describeExit,
  isRunning,
  type Serving,
  signalChild,
  untilReported,
} from "../support/program.ts";
import type { Random } from "../support/random.ts";
import type { Ledger } from "./ledger.ts";
import type { ServedLog } from "./served_log.ts";
import type { Tally } from "./tally.ts";
import { claim } from "./violation.ts";

/** The context of a fault. */
export interface Scene {
  served: ServedLog;
  random: Random;
  tally: Tally;
  ledger: Ledger;
  /** Aborted on a violation. */
  failing: AbortSignal;
}

/** Resolves once the service responds again. @throws {Violation} if the service misbehaves. */
export type Disturbance = (scene: Scene) => Promise<void>;

/** Maximum delays before startups and shutdowns are killed, in milliseconds. */
const START_MS_MAX = 400;
const SHUTDOWN_MS_MAX = 5;
/** Polling interval. */
const POLL_MS = 1;
const SEAL_MS_MAX = 2_000;
const FREEZE_MS_MAX = 2_000;

export const DISTURBANCES = {
  kill,
  stop,
  killStart,
  killRecovery,
  killShutdown,
  seal,
  killSeal,
  verify,
  freeze,
} satisfies Record<string, Disturbance>;

/** The faults in one pass of a soak. Repeated ones are more frequent. */
export const SOAK_DECK: readonly Disturbance[] = [
  ...[kill, kill, stop, killStart, killRecovery, killShutdown, seal, killSeal, verify, freeze],
];

async function kill({ served, tally }: Scene): Promise<void> {
  await served.kill();
  tally.add("kills");
  await served.start();
}

async function stop({ served, tally }: Scene): Promise<void> {
  await served.stop();
  tally.add("stops");
  await served.start();
}

/** Kills the starting service at a random moment, possibly during recovery. */
async function killStart({ served, random, tally, failing }: Scene): Promise<void> {
  await served.kill();
  const starting = served.launch();
  await delay(random() * START_MS_MAX, undefined, { signal: failing });
  await restart(served, starting);
  tally.add("kills", 2);
}

/** Kills a starting service, and starts another one. */
async function restart(served: ServedLog, { child, exited }: Serving): Promise<void> {
  signalChild(child, "SIGKILL");
  await exited;
  await served.start();
}

/** Kills a starting service when recovery writes to the tail, or once the service is up. */
async function killRecovery({ served, tally }: Scene): Promise<void> {
  await served.kill();
  const before = await tailState(served);
  const starting = served.launch();
  const serving = untilReported(starting, "serving").then(() => "serving", () => "ended");
  let state: string | void = undefined;
  while (state === undefined && await tailState(served) === before) {
    state = await Promise.race([serving, delay(POLL_MS)]);
  }
  claim(isRunning(starting), `serve exited during startup: ${starting.output.stderr}`);
  await restart(served, starting);
  tally.add("kills", 2);
}

/** Returns a fingerprint of the tail file, which changes when recovery writes to it. */
async function tailState({ logDir }: ServedLog): Promise<string> {
  const tail = await stat(join(logDir, TAIL_FILE), { bigint: true }).catch(() => null);
  return `${tail?.ino} ${tail?.size} ${tail?.mtimeNs}`;
}

/** Requests a shutdown, and kills the service during it. */
async function killShutdown({ served, random, tally }: Scene): Promise<void> {
  const { signal } = await served.killInShutdown(random() * SHUTDOWN_MS_MAX);
  tally.add(signal === "SIGKILL" ? "kills" : "stops");
  await served.start();
}

/** Stops or kills the service, seals the log, and restarts the service. */
async function seal(scene: Scene): Promise<void> {
  const { served, tally } = scene;
  await endForSeal(scene);
  checkSeal(await served.run(["seal"]));
  tally.add("seals");
  await served.start();
}

async function killSeal(scene: Scene): Promise<void> {
  const { served, random, tally, failing } = scene;
  await endForSeal(scene);
  const sealing = served.spawn(["seal"]);
  const moment = delay(random() * SEAL_MS_MAX, undefined, { signal: failing });
  await Promise.race([moment, sealing.exited]);
  signalChild(sealing.child, "SIGKILL");
  checkSeal(await sealing.exited);
  tally.add("kills");
  await served.start();
}

async function endForSeal({ served, random, tally }: Scene): Promise<void> {
  if (random() < 0.5) {
    await served.stop();
    tally.add("stops");
  } else {
    await served.kill();
    tally.add("kills");
  }
}

/** Verifies the log while the service writes to it. */
async function verify({ served, random, tally }: Scene): Promise<void> {
  const exit = await served.run(random() < 0.5 ? ["verify"] : ["verify", "--chain"]);
  claim(exit.code === 0, `verify while serving: ${exit.stdout} ${describeExit(exit)}`);
  tally.add("verifies");
}

async function freeze({ served, random, tally, failing }: Scene): Promise<void> {
  await served.freeze(random() * FREEZE_MS_MAX, failing);
  tally.add("freezes");
}

function checkSeal(exit: CliExit): void {
  const isFine = exit.signal === "SIGKILL" || exit.code === 0 ||
    exit.code === 1 && /nothing to seal/.test(exit.stderr);
  claim(isFine, `seal: ${describeExit(exit)}`);
}
