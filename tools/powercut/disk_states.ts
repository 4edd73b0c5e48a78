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
import type { Receipt, RetirementReceipt } from "../../src/event/types.ts";
import { Audit } from "../soak/audit.ts";
import { type Due, Ledger, type LedgerEntry } from "../soak/ledger.ts";
import { Tally } from "../soak/tally.ts";
import { Violation } from "../soak/violation.ts";
import { randomOf } from "../soak/workload.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { type CampaignOptions, WRITERS } from "./campaign.ts";
import { Clients } from "./clients.ts";
import { checkDisk } from "./disk_check.ts";
import { copyDisk, makeDisk } from "./file_systems.ts";
import { PoweredLog } from "./powered_log.ts";
import { applyWrites, type LoggedWrite, readWriteLog } from "./write_log.ts";

/** Receipts per recording. Each state is read completely, so short logs are checked faster. */
const RECEIPTS = 40;
const POLL_MS = 20;
/** Number of states per flush that contain only a subset of the writes since the last flush. */
const PARTIAL_STATES = 4;

/** A ledger that also stores the length of the write recording at each receipt. */
class RecordedLedger extends Ledger {
  readonly #recordPath: string;
  /** Indexed like `acknowledged`. */
  readonly batchesAtBytes: number[] = [];
  readonly retirementsAtBytes: { atBytes: number; receipt: RetirementReceipt }[] = [];

  constructor(recordPath: string) {
    super();
    this.#recordPath = recordPath;
  }

  override acknowledge(entry: LedgerEntry, receipt: Receipt): void {
    super.acknowledge(entry, receipt);
    const { length } = this.acknowledged;
    if (length > this.batchesAtBytes.length) this.batchesAtBytes.push(this.#recordBytes);
  }

  override retire(receipt: RetirementReceipt): void {
    super.retire(receipt);
    this.retirementsAtBytes.push({ atBytes: this.#recordBytes, receipt });
  }

  /** Returns everything acknowledged by the time the recording reached this size. */
  dueAt(recordBytes: number): Due {
    const isDue = (atBytes: number) => atBytes <= recordBytes;
    return {
      batches: this.batchesAtBytes.filter(isDue).length,
      retirements: this.retirementsAtBytes.filter(({ atBytes }) => isDue(atBytes))
        .map(({ receipt }) => receipt),
    };
  }

  get #recordBytes(): number {
    return statSync(this.#recordPath).size;
  }
}

/**
 * Records a load and checks its disk states. @throws {Violation} if acknowledged data is missing.
 */
export async function checkDiskStates(options: CampaignOptions): Promise<Tally> {
  const { saved, folder, seed } = options;
  const tally = new Tally();
  for (let number = 0; tally.of("states") < options.count; number++) {
    const name = (kind: string) => join(folder, `${kind}-${seed}-${number}.img`);
    const disk = name("recorded");
    const before = name("before");
    await makeDisk(disk, saved.options.fileSystem);
    await copyDisk(disk, before);
    const record = name("record");
    await (await open(record, "w")).close();
    const ledger = new RecordedLedger(record);
    await recordLoad(options, number, disk, record, ledger, tally);
    await replayStates(options, number, before, record, ledger, tally);
    for (const path of [disk, before, record]) await rm(path);
  }
  return tally;
}

async function recordLoad(
  { saved, seed }: CampaignOptions,
  number: number,
  disk: string,
  record: string,
  ledger: Ledger,
  tally: Tally,
): Promise<void> {
  const log = await PoweredLog.create(saved, { disk, record });
  const clients = new Clients({ seed, number, client: log.client, ledger, tally });
  try {
    await log.start();
    clients.start(WRITERS, 0);
    while (ledger.acknowledged.length < RECEIPTS) {
      await delay(POLL_MS, undefined, { signal: clients.load.failing });
    }
    await clients.end();
  } catch (error) {
    throw clients.firstError ?? error;
  } finally {
    clients.abandon();
    await log.dispose();
  }
}

async function replayStates(
  options: CampaignOptions,
  number: number,
  base: string,
  record: string,
  ledger: RecordedLedger,
  tally: Tally,
): Promise<void> {
  const { saved, folder, count, seed, report } = options;
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
    await checkDisk(scratch, saved.options.fileSystem, audit, ledger.dueAt(endBytes)).catch(
      (error) => {
        const where = `disk state at byte ${endBytes} of ${record}`;
        throw new Violation(`${where}: ${error.message}`, { cause: error });
      },
    );
    tally.add("states");
    if (tally.of("states") % 100 === 0) report(`${tally.of("states")} of ${count} states`);
  };
  try {
    let since: LoggedWrite[] = [];
    for (const write of await readWriteLog(log)) {
      since.push(write);
      if (!write.isFlush) continue;
      const { batches } = ledger.dueAt(write.endBytes);
      const isServing = batches > 0;
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
