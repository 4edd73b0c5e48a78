/**
 * The real service is killed at random moments during startup, shutdown and ingest with concurrent
 * writers, and so is `seal`. Every acknowledged batch must exist exactly once, complete, with
 * the ids in its receipt; every other batch is either absent or complete. KILLS sets the number of
 * kills.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Disturbance, DISTURBANCES, type Scene } from "../../tools/soak/disturbances.ts";
import { randomInteger, randomItem, SEED, seededRandom } from "../../tools/support/random.ts";
import { untilBatches } from "../support/scenes.ts";
import { soakThrough, tellOfLongRun } from "./support/soaked.ts";

const KILLS = Number(process.env.KILLS ?? 13);
/** Maximum number of receipts before a kill during ingest. A short delay may follow. */
const RECEIPTS_MAX = 30;
const MOMENT_MS_MAX = 5;
const SEALED_SHARE = 0.15;

/** Kills during ingest, half the time right after a receipt, whose batch must then be durable. */
async function killInIngest(scene: Scene): Promise<void> {
  const { random } = scene;
  await untilBatches(scene, randomInteger(random, 1, RECEIPTS_MAX));
  if (random() < 0.5) await delay(random() * MOMENT_MS_MAX);
  await DISTURBANCES.kill(scene);
}

const KINDS: Record<string, Disturbance> = {
  "killed during ingest": killInIngest,
  "killed during shutdown": DISTURBANCES.killShutdown,
  "killed during startup": DISTURBANCES.killStart,
  "killed after recovery has written": DISTURBANCES.killRecovery,
  "seal killed": DISTURBANCES.killSeal,
};
/** Nearly half of the kills strike during ingest. */
const DRAWN = [...Object.keys(KINDS), "killed during ingest", "killed during ingest"];

test(`serve keeps everything it acknowledged through ${KILLS} kills (SEED=${SEED})`, async () => {
  const random = seededRandom(SEED);
  const deck = Array.from({ length: KILLS }, (): Disturbance[] => {
    const kill = KINDS[randomItem(random, DRAWN)]!;
    return random() < SEALED_SHARE ? [kill, DISTURBANCES.seal] : [kill];
  });
  const result = await soakThrough(deck.flat());
  // If a shutdown completes before the kill, it is counted as a stop.
  assert.ok(result.tally.of("kills") + result.tally.of("stops") >= KILLS);
  tellOfLongRun("KILLS", result);
});
