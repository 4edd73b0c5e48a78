/**
 * The real service while a thread seals its tail. During a seal, the service is killed at a random
 * moment, or its log is followed, read and verified. Every acknowledged batch exists exactly once.
 * KILLS sets the number of kills, and ROTATE_KIB sets the size at which a tail is rotated.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DISTURBANCES, type Scene } from "../../tools/soak/disturbances.ts";
import type { ServedLog } from "../../tools/soak/served_log.ts";
import { SEED } from "../../tools/support/random.ts";
import { openFiles } from "../support/open_files.ts";
import { until } from "../support/scenes.ts";
import { soakThrough, tellOfLongRun } from "./support/soaked.ts";

const KILLS = Number(process.env.KILLS ?? 3);
const ROTATE_BYTES = Number(process.env.ROTATE_KIB ?? 256) * 1024;
/** Maximum number of descriptors for pending files and for a worker thread in either runtime. */
const OTHER_FILES_MAX = 20;
const SEGMENTS_WANTED = 3;
const SETTLE_MS_MAX = 30_000;
/** Maximum delay between a rotation and a kill, about twice the duration of a seal. */
const MOMENT_MS_MAX = 200;

function filesIn({ logDir }: ServedLog, folder: string): string[] {
  return readdirSync(join(logDir, folder));
}

function segmentsOf(served: ServedLog): string[] {
  return filesIn(served, "segments").filter((name) => name.endsWith(".parquet"));
}

function assertSealsQuietly({ output }: ServedLog): void {
  assert.doesNotMatch(output.stderr, /not sealed|not rotated|stopped/);
}

const killedTitle =
  `serve keeps everything it acknowledged through ${KILLS} kills while sealing (SEED=${SEED})`;
test(killedTitle, async () => {
  /** Kills the service at a random time after a rotation. */
  const killInSealing = async (scene: Scene) => {
    const { served, random, tally } = scene;
    const before = segmentsOf(served).length;
    const hasRotated = () =>
      filesIn(served, "pending").length > 0 || segmentsOf(served).length > before;
    await until(scene, hasRotated);
    await delay(random() * MOMENT_MS_MAX);
    assertSealsQuietly(served);
    await served.kill();
    tally.add("kills");
    await served.start();
  };
  const deck = Array.from({ length: KILLS }, () => killInSealing);
  const result = await soakThrough(deck, { rotateBytes: ROTATE_BYTES });
  assert.equal(result.tally.of("kills"), KILLS);
  tellOfLongRun("KILLS", result);
});

/** Number of descriptors for anything but the sockets of clients. */
function countFiles({ pid }: ServedLog): number {
  return openFiles(pid!).filter((target) => !target.startsWith("socket:")).length;
}

test("serve seals during follows, replays and verify without leaking descriptors", async () => {
  const watchSealing = async (scene: Scene) => {
    const { served, tally } = scene;
    const before = countFiles(served);
    await until(scene, () => segmentsOf(served).length > 1);
    await DISTURBANCES.verify(scene);
    await until(scene, () => segmentsOf(served).length >= SEGMENTS_WANTED);
    await until(scene, () => tally.of("followed") > 0 && tally.of("pages") > 0);
    // Waits, because a running seal or verify may briefly keep more files open.
    const deadline = AbortSignal.timeout(SETTLE_MS_MAX);
    // A file that waits to be sealed has two descriptors.
    const filesMax = () =>
      before + segmentsOf(served).length + 2 * filesIn(served, "pending").length + OTHER_FILES_MAX;
    await until(scene, () => deadline.aborted || countFiles(served) <= filesMax());
    assert.ok(
      !deadline.aborted,
      `${countFiles(served)} open files, expected at most ${filesMax()}`,
    );
    assertSealsQuietly(served);
  };
  await soakThrough([watchSealing], { rotateBytes: ROTATE_BYTES, loadMsMax: 0 });
});
