/**
 * Repeatedly cuts the power to a VM that serves a log, and checks the recovered log against
 * everything acknowledged or returned before. A disk image is used for several cuts. The seed
 * determines the load, but not its timing.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Audit, type KnownHeads } from "../soak/audit.ts";
import { Clients } from "../soak/clients.ts";
import { Ledger } from "../soak/ledger.ts";
import { Violation } from "../soak/violation.ts";
import { LIGHT_STEPS, randomOf } from "../soak/workload.ts";
import { randomInteger } from "../support/random.ts";
import { checkDisk } from "./disk_check.ts";
import { copyDisk, makeDisk } from "./disks.ts";
import { type CampaignOptions, PoweredLog, WRITERS } from "./powered_log.ts";

const CLIENTS = { writers: WRITERS, readers: 0, followers: 1 };
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
  const { fileSystem } = saved;
  const random = randomOf(seed, `disk ${number}`);
  const log = new PoweredLog(saved, { disk });
  const ledger = new Ledger();
  const failing = new AbortController();
  const shared = { seed, number, client: log.client, ledger, tally, steps: LIGHT_STEPS };
  const clients = new Clients(shared, failing);
  const { signal } = failing;
  const heads: KnownHeads = new Map();
  const audit = new Audit(ledger, heads);
  const image = `${disk}.copy`;
  /** Waits for a random number of receipts, then for a random time. */
  const untilCut = async () => {
    const receipts = tally.of("batches") + randomInteger(random, 0, RECEIPTS_MAX);
    while (tally.of("batches") < receipts) await delay(POLL_MS, undefined, { signal });
    const delayMsMax = random() < LONG_DELAY_SHARE ? LONG_DELAY_MS_MAX : DELAY_MS_MAX;
    await delay(random() * delayMsMax, undefined, { signal });
  };
  let sealed = 0;
  try {
    await log.start();
    clients.start(CLIENTS);
    for (let cut = 0; cut < CUTS_PER_DISK && tally.of("kills") < count; cut++) {
      const startMs = performance.now();
      await untilCut();
      await log.cutPower();
      tally.add("kills");
      // Check a copy on the host, and the disk itself in the machine. Both must recover it.
      await copyDisk(disk, image);
      const copyAudit = new Audit(ledger, new Map(heads));
      const segments = await checkDisk(image, fileSystem, copyAudit, ledger.due());
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
  } catch (error) {
    const cause = signal.aborted ? signal.reason : error;
    const where = `the disk is ${disk}; console: ${log.console}`;
    throw new Violation(`${(cause as Error).message}; ${where}`, { cause });
  } finally {
    failing.abort(new Error("the load is over"));
    await log.dispose();
  }
}
