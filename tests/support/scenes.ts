/** Waits that end early if the soak fails. */
import { setTimeout as delay } from "node:timers/promises";
import type { Scene } from "../../tools/soak/disturbances.ts";

const POLL_MS = 1;

/** Waits until a condition is true. */
export async function until({ failing }: Scene, holds: () => boolean): Promise<void> {
  while (!holds()) await delay(POLL_MS, undefined, { signal: failing });
}

/** Waits until clients have appended `more` further batches. */
export async function untilBatches(scene: Scene, more: number): Promise<void> {
  const due = scene.tally.of("batches") + more;
  await until(scene, () => scene.tally.of("batches") >= due);
}
