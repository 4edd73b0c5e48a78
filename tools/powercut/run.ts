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
import { Tally } from "../soak/tally.ts";
import { claim, Violation } from "../soak/violation.ts";
import { randomOf } from "../soak/workload.ts";
import { randomInteger } from "../support/random.ts";
import { type CampaignOptions, WRITERS } from "./campaign.ts";
import { Clients } from "./clients.ts";
import { checkDisk } from "./disk_check.ts";
import { copyDisk, makeDisk } from "./file_systems.ts";
import { PoweredLog } from "./powered_log.ts";

const FOLLOWERS = 1;
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
export async function cutPowerRepeatedly(options: CampaignOptions): Promise<Tally> {
  const tally = new Tally();
  for (let disk = 0; tally.of("kills") < options.count; disk++) {
    const path = join(options.folder, `disk-${options.seed}-${disk}.img`);
    await makeDisk(path, options.saved.options.fileSystem);
    await wearDisk(options, disk, path, tally);
    await rm(path);
    await rm(`${path}.copy`);
  }
  return tally;
}

async function wearDisk(
  options: CampaignOptions,
  number: number,
  disk: string,
  tally: Tally,
): Promise<void> {
  const { saved, seed, count, report } = options;
  const { fileSystem } = saved.options;
  const random = randomOf(seed, `disk ${number}`);
  const log = await PoweredLog.create(saved, { disk });
  const clients = new Clients({ seed, number, client: log.client, ledger: new Ledger(), tally });
  const { load } = clients;
  const heads: KnownHeads = new Map();
  const audit = new Audit(load.ledger, heads);
  const image = `${disk}.copy`;
  /** Reads new events from the service. */
  const readOn = async (reader: Audit) => {
    const before = reader.history.length;
    await reader.catchUp(log.client, load.failing);
    tally.add("audited", reader.history.length - before);
    tally.add("checked", load.observations.check(reader.history));
  };
  /** Waits for a random number of receipts, then for a random time. */
  const untilCut = async () => {
    const receipts = tally.of("batches") + randomInteger(random, 0, RECEIPTS_MAX);
    while (tally.of("batches") < receipts) {
      await delay(POLL_MS, undefined, { signal: load.failing });
    }
    const delayMsMax = random() < LONG_DELAY_SHARE ? LONG_DELAY_MS_MAX : DELAY_MS_MAX;
    await delay(random() * delayMsMax, undefined, { signal: load.failing });
  };
  let sealed = 0;
  try {
    await log.start();
    clients.start(WRITERS, FOLLOWERS);
    for (let cut = 0; cut < CUTS_PER_DISK && tally.of("kills") < count; cut++) {
      const startMs = performance.now();
      await untilCut();
      await log.cutPower();
      tally.add("kills");
      // Check a copy on the host, and the disk itself in the machine. Both must recover it.
      await copyDisk(disk, image);
      const copyAudit = new Audit(load.ledger, new Map(heads));
      const segments = await checkDisk(image, fileSystem, copyAudit, load.ledger.due());
      tally.add("seals", segments - sealed);
      sealed = segments;
      await log.start();
      await readOn(audit);
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      report(`cut ${tally.of("kills")} of ${count} after ${seconds} s: ${tally}`);
    }
    await clients.end();
    // Audit the whole log once more, from the beginning.
    const whole = new Audit(load.ledger, heads);
    await readOn(whole);
    whole.checkHeads();
    const said = await log.verify();
    claim(said.endsWith("exit 0\n"), `verify --chain: ${said}`);
    tally.add("verifies");
  } catch (error) {
    const cause = clients.firstError ?? error;
    const where = `the disk is ${disk}; console: ${log.console}`;
    throw new Violation(`${(cause as Error).message}; ${where}`, { cause });
  } finally {
    clients.abandon();
    await log.dispose();
  }
}
