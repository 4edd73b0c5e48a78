/**
 * The real service, killed at random moments of its start, of ingest under concurrent writers and
 * of its shutdown, with a sealing now and then. Every acknowledged batch must be there once, whole,
 * with the ids of its receipt; every other one is absent or whole. KILLS says how many kills.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Disturbance, DISTURBANCES, type Scene } from "../../tools/soak/disturbances.ts";
import { randomInteger, randomItem, SEED, seededRandom } from "../../tools/support/random.ts";
import { soakThrough, tellOfLongRun } from "./support/soaked.ts";

const KILLS = Number(process.env.KILLS ?? 25);
/** Ingest is killed after at most so many receipts, and a moment. */
const RECEIPTS_MAX = 30;
const MOMENT_MS_MAX = 5;
const POLL_MS = 1;
const SEALED_SHARE = 0.15;

/** Half of the time with a receipt in hand: what it promises must be true by then. */
async function killInIngest(scene: Scene): Promise<void> {
  const { random, tally, failing } = scene;
  const due = tally.of("batches") + randomInteger(random, 1, RECEIPTS_MAX);
  while (tally.of("batches") < due) await delay(POLL_MS, undefined, { signal: failing });
  if (random() < 0.5) await delay(random() * MOMENT_MS_MAX);
  await DISTURBANCES.kill(scene);
}

const KINDS: Record<string, Disturbance> = {
  "killed in ingest": killInIngest,
  "killed in shutdown": DISTURBANCES.killShutdown,
  "killed in start": DISTURBANCES.killStart,
  "killed once recovery had written": DISTURBANCES.killRecovery,
};
/** Ingest as often as all others. */
const DRAWN = [...Object.keys(KINDS), "killed in ingest", "killed in ingest"];

test(`serve keeps everything it acknowledged through ${KILLS} kills (SEED=${SEED})`, async () => {
  const random = seededRandom(SEED);
  const struck: Record<string, number> = {};
  const deck = Array.from({ length: KILLS }, (): Disturbance[] => {
    const kind = randomItem(random, DRAWN);
    struck[kind] = (struck[kind] ?? 0) + 1;
    return random() < SEALED_SHARE ? [KINDS[kind]!, DISTURBANCES.seal] : [KINDS[kind]!];
  });
  const result = await soakThrough(deck.flat());
  // A shutdown may be over before the kill comes.
  assert.ok(result.tally.of("kills") + result.tally.of("stops") >= KILLS);
  tellOfLongRun("KILLS", result, struck);
});
