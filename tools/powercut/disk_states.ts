/**
 * Checks the states that a power failure could leave on a real file system. A virtual machine
 * serves a log on a disk whose writes are recorded. The recording is then replayed up to each
 * flush, and between flushes with a random subset of the writes since the last one. Each state is
 * mounted on the host, which requires root, and must contain every event acknowledged by then.
 */
import { open, rm } from "node:fs/promises";
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Audit } from "../soak/audit.ts";
import { type Due, Ledger } from "../soak/ledger.ts";
import { Violation } from "../soak/violation.ts";
import { randomOf } from "../soak/workload.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { checkDisk } from "./disk_check.ts";
import { copyDisk, makeDisk } from "./disks.ts";
import { type CampaignOptions, underLoad } from "./powered_log.ts";
import { applyWrites, type LoggedWrite, readWriteLog } from "./write_log.ts";

/** Receipts per recording. Each state is read completely, so short logs are checked faster. */
const RECEIPTS = 40;
const POLL_MS = 20;
/** Number of states per flush that contain only a subset of the writes since the last flush. */
const PARTIAL_STATES = 4;
const NOTHING_DUE: Due = { batches: 0, retirements: [] };

/** What was acknowledged when the recording of writes had some size. */
interface Acknowledged {
  atBytes: number;
  due: Due;
}

/**
 * Records a load and checks its disk states. @throws {Violation} if acknowledged data is missing.
 */
export async function checkDiskStates(options: CampaignOptions): Promise<void> {
  const { saved, folder, seed, count, tally } = options;
  for (let number = 0; tally.of("states") < count; number++) {
    const [disk, before, record] = ["recorded", "before", "record"].map((kind) =>
      join(folder, `${kind}-${seed}-${number}.img`)
    ) as [string, string, string];
    await makeDisk(disk, saved.fileSystem);
    await copyDisk(disk, before);
    await (await open(record, "w")).close();
    const ledger = new Ledger();
    const acknowledged = await recordLoad(options, number, { disk, record }, ledger);
    await replayStates(options, number, before, record, ledger, acknowledged);
    for (const path of [disk, before, record]) await rm(path);
  }
}

/** Runs a load on a disk. @returns what it acknowledged, in order. */
async function recordLoad(
  options: CampaignOptions,
  number: number,
  disk: { disk: string; record: string },
  ledger: Ledger,
): Promise<Acknowledged[]> {
  const acknowledged: Acknowledged[] = [];
  ledger.onReceipt = () => {
    acknowledged.push({ atBytes: statSync(disk.record).size, due: ledger.due() });
  };
  await underLoad(options, { ...disk, number, ledger, followers: 0 }, async (_log, clients) => {
    const { failing: signal } = clients.load;
    while (ledger.acknowledged.length < RECEIPTS) await delay(POLL_MS, undefined, { signal });
    await clients.end();
  });
  return acknowledged;
}

async function replayStates(
  options: CampaignOptions,
  number: number,
  base: string,
  record: string,
  ledger: Ledger,
  acknowledged: readonly Acknowledged[],
): Promise<void> {
  const { saved, folder, count, seed, tally, report } = options;
  const dueAt = (bytes: number) =>
    acknowledged.findLast(({ atBytes }) => atBytes <= bytes)?.due ?? NOTHING_DUE;
  const random = randomOf(seed, `states ${number}`);
  const scratch = join(folder, `state-${seed}.img`);
  const [log, disk] = [await open(record, "r"), await open(base, "r+")];
  const check = async (lost: readonly LoggedWrite[], endBytes: number) => {
    if (tally.of("states") >= count) return;
    await copyDisk(base, scratch);
    const state = await open(scratch, "r+");
    await applyWrites(state, log, lost);
    await state.close();
    const audit = new Audit(ledger, new Map());
    await checkDisk(scratch, saved.fileSystem, audit, dueAt(endBytes)).catch((error) => {
      const where = `disk state at byte ${endBytes} of ${record}`;
      throw new Violation(`${where}: ${error.message}`, { cause: error });
    });
    tally.add("states");
    if (tally.of("states") % 100 === 0) report(`${tally.of("states")} of ${count} states`);
  };
  try {
    let since: LoggedWrite[] = [];
    for (const write of await readWriteLog(log)) {
      since.push(write);
      if (!write.isFlush) continue;
      const isServing = dueAt(write.endBytes).batches > 0;
      for (let partial = 0; isServing && partial < PARTIAL_STATES; partial++) {
        const place = randomInteger(random, 0, since.length - 1);
        const kept = someOf(since.slice(0, place), random);
        await check(kept, since[0]!.endBytes - 1);
      }
      await applyWrites(disk, log, since);
      since = [];
      if (isServing) await check([], write.endBytes);
    }
  } finally {
    await log.close();
    await disk.close();
    await rm(scratch, { force: true });
  }
}

/** Returns a random subset, since a power failure may keep any writes since the last flush. */
function someOf(writes: readonly LoggedWrite[], random: Random): LoggedWrite[] {
  const share = random();
  return writes.filter(() => random() < share);
}
