/**
 * Repeatedly cuts the power to a VM that serves a log, and checks the recovered log against
 * everything acknowledged or returned before. A disk image is used for several cuts. The seed
 * determines the load, but not its timing.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Audit, type KnownHeads } from "../soak/audit.ts";
import { Ledger } from "../soak/ledger.ts";
import type { Load } from "../soak/load.ts";
import { randomOf } from "../soak/workload.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { checkDisk } from "./disk_check.ts";
import { copyDisk, makeDisk } from "./disks.ts";
import { type CampaignOptions, underLoad } from "./powered_log.ts";

/** Power cuts per disk image. A new image limits the time to read the log back. */
const CUTS_PER_DISK = 8;
/** Maximum number of receipts between two cuts. */
const RECEIPTS_MAX = 6;
/** Maximum delay between the last receipt and the cut. Long delays let a seal finish a segment. */
const DELAY_MS_MAX = 500;
const LONG_DELAY_MS_MAX = 15_000;
const LONG_DELAY_SHARE = 0.05;
const POLL_MS = 5;

/** Cuts the power `count` times. @throws {Violation} if data is lost. */
export async function cutPowerRepeatedly(options: CampaignOptions): Promise<void> {
  const { count, folder, saved, seed, tally } = options;
  for (let number = 0; tally.of("kills") < count; number++) {
    const disk = join(folder, `disk-${seed}-${number}.img`);
    await makeDisk(disk, saved.fileSystem);
    await wearDisk(options, number, disk);
    await rm(disk);
    await rm(`${disk}.copy`);
  }
}

async function wearDisk(options: CampaignOptions, number: number, disk: string): Promise<void> {
  const { saved, seed, count, tally, report } = options;
  const random = randomOf(seed, `disk ${number}`);
  const ledger = new Ledger();
  const heads: KnownHeads = new Map();
  const audit = new Audit(ledger, heads);
  const image = `${disk}.copy`;
  let sealed = 0;
  await underLoad(options, { number, disk, ledger, followers: 1 }, async (log, clients) => {
    for (let cut = 0; cut < CUTS_PER_DISK && tally.of("kills") < count; cut++) {
      const startMs = performance.now();
      await untilCut(random, clients.load);
      await log.cutPower();
      tally.add("kills");
      // Check a copy on the host, and the disk itself in the machine. Both must recover it.
      await copyDisk(disk, image);
      const copyAudit = new Audit(ledger, new Map(heads));
      const segments = await checkDisk(image, saved.fileSystem, copyAudit, ledger.due());
      tally.add("seals", segments - sealed);
      sealed = segments;
      await log.start();
      await clients.check(audit);
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      report(`cut ${tally.of("kills")} of ${count} after ${seconds} s: ${tally}`);
    }
    await clients.end();
    // Audit the whole log once more, from the beginning.
    const whole = new Audit(ledger, heads);
    await clients.check(whole);
    whole.checkHeads();
  });
}

/** Waits for a random number of receipts, then for a random time. */
async function untilCut(random: Random, { tally, failing: signal }: Load): Promise<void> {
  const receipts = tally.of("batches") + randomInteger(random, 0, RECEIPTS_MAX);
  while (tally.of("batches") < receipts) await delay(POLL_MS, undefined, { signal });
  const delayMsMax = random() < LONG_DELAY_SHARE ? LONG_DELAY_MS_MAX : DELAY_MS_MAX;
  await delay(random() * delayMsMax, undefined, { signal });
}
