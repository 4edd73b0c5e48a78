/**
 * Faults injected into the service under load. Each ends with the service running. The audit checks
 * whether the log is still correct.
 */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { MANIFEST_FILE, TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { describeExit, isRunning, signalChild, untilReported } from "../support/program.ts";
import type { Random } from "../support/random.ts";
import type { KnownHeads } from "./audit.ts";
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
  /** Chain heads reported by the service, to which those of segments are added. */
  heads: KnownHeads;
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
const CALM_MS = 10_000;

export const DISTURBANCES = {
  kill,
  stop,
  killStart,
  killRecovery,
  killShutdown,
  seal,
  killSeal,
  verify,
  intrude,
  freeze,
  calm,
} satisfies Record<string, Disturbance>;

/** The faults in one pass of a soak. Repeated ones are more frequent. */
export const SOAK_DECK: readonly Disturbance[] = [
  ...Array.from({ length: 5 }, () => kill),
  ...Array.from(
    { length: 2 },
    () => [stop, killStart, killRecovery, killShutdown, seal, killSeal, verify, freeze],
  ).flat(),
  intrude,
  calm,
];

async function kill({ served, tally }: Scene): Promise<void> {
  await served.kill();
  tally.add("kills");
  await start({ served, tally });
}

async function stop({ served, tally }: Scene): Promise<void> {
  await served.stop();
  tally.add("stops");
  await start({ served, tally });
}

async function start({ served, tally }: Pick<Scene, "served" | "tally">): Promise<void> {
  await served.start();
  tally.add("starts");
}

/** Kills the starting service at a random moment, possibly during recovery. */
async function killStart({ served, random, tally, failing }: Scene): Promise<void> {
  await served.kill();
  const starting = served.launch();
  await delay(random() * START_MS_MAX, undefined, { signal: failing });
  signalChild(starting.child, "SIGKILL");
  await starting.exited;
  tally.add("kills", 2);
  await start({ served, tally });
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
  signalChild(starting.child, "SIGKILL");
  await starting.exited;
  tally.add("kills", 2);
  await start({ served, tally });
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
  await start({ served, tally });
}

/** Stops or kills the service, seals the log, and restarts the service. */
async function seal(scene: Scene): Promise<void> {
  const { served, tally } = scene;
  await endForSeal(scene);
  const exit = await served.run(["seal"]);
  const isNothing = exit.code === 1 && /nothing to seal/.test(exit.stderr);
  claim(exit.code === 0 || isNothing, `seal: ${describeExit(exit)}`);
  tally.add("seals");
  await noteSegments(scene);
  await start(scene);
}

async function killSeal(scene: Scene): Promise<void> {
  const { served, random, tally, failing } = scene;
  await endForSeal(scene);
  const sealing = served.spawn(["seal"]);
  await Promise.race([
    delay(random() * SEAL_MS_MAX, undefined, { signal: failing }),
    sealing.exited,
  ]);
  signalChild(sealing.child, "SIGKILL");
  const exit = await sealing.exited;
  const isFine = exit.signal === "SIGKILL" || exit.code === 0 ||
    /nothing to seal/.test(exit.stderr);
  claim(isFine, `seal: ${describeExit(exit)}`);
  tally.add("kills");
  await noteSegments(scene);
  await start(scene);
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

/** Starts a second writer, which must fail to get the lock. */
async function intrude({ served, random, tally }: Scene): Promise<void> {
  const exit = await served.run([random() < 0.5 ? "serve" : "seal"]);
  const isRefused = exit.code === 1 && /held by another process/.test(exit.stderr);
  claim(isRefused, `a second writer while serving: ${describeExit(exit)}`);
  tally.add("intrusions");
}

async function freeze({ served, random, tally, failing }: Scene): Promise<void> {
  await served.freeze(random() * FREEZE_MS_MAX, failing);
  tally.add("freezes");
}

/** Leaves one process running long enough to reveal leaks. */
async function calm({ failing }: Scene): Promise<void> {
  await delay(CALM_MS, undefined, { signal: failing });
}

/** Records segments' chain heads. @throws {Violation} if one differs from the known head. */
async function noteSegments({ served, heads }: Scene): Promise<void> {
  const { segments } = JSON.parse(await readFile(join(served.logDir, MANIFEST_FILE), "utf8"));
  for (const { last_event_id: id, head } of segments) {
    const known = heads.get(id) ?? head;
    claim(known === head, `the manifest has head ${head} after event ${id}, not ${known}`);
    heads.set(id, head);
  }
}
