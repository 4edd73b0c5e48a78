/**
 * Makes a virtual machine's disk fail while clients use the log, checks every response, and
 * cuts the power. Then checks the log with a working disk.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import { ConnectionError, EventLogError } from "../../src/client/errors.ts";
import { Audit } from "../soak/audit.ts";
import { Ledger } from "../soak/ledger.ts";
import { refusalOf } from "../soak/load.ts";
import type { Tally } from "../soak/tally.ts";
import { claim, Violation } from "../soak/violation.ts";
import { batchIdOf, makeBatch, randomOf } from "../soak/workload.ts";
import { randomInteger } from "../support/random.ts";
import { checkDisk } from "./disk_check.ts";
import { makeDisk } from "./disks.ts";
import type { FailingRequest } from "./machine.ts";
import { type CampaignOptions, PoweredLog, WRITERS } from "./powered_log.ts";

const KINDS: readonly FailingRequest[] = ["write", "flush", "read"];
/** Maximum number of receipts before the disk fails. */
const RECEIPTS_MAX = 60;
const POLL_MS = 5;

/** Makes disks fail in turn. @throws {Violation} if a response or the recovered log is wrong. */
export async function checkDiskErrors(options: CampaignOptions): Promise<void> {
  const { count, folder, seed, tally, report } = options;
  for (let number = 0; number < count; number++) {
    const disk = join(folder, `failing-${seed}-${number}.img`);
    const kind = KINDS[number % KINDS.length]!;
    const name = `disk ${number} with ${kind} errors`;
    try {
      await failDisk(options, number, disk, kind);
    } catch (error) {
      throw new Violation(`${name}: ${(error as Error).message}`, { cause: error });
    }
    report(`${name}: ${tally}`);
    await rm(disk);
  }
}

async function failDisk(
  { saved, seed, tally }: CampaignOptions,
  number: number,
  disk: string,
  kind: FailingRequest,
): Promise<void> {
  const { fileSystem } = saved;
  await makeDisk(disk, fileSystem);
  const log = new PoweredLog(saved, { disk });
  const ledger = new Ledger();
  const errors: EventLogError[] = [];
  const receipts = randomInteger(randomOf(seed, `failing ${number}`), 1, RECEIPTS_MAX);
  const sourceOf = (place: number) => `writer-${number}-${place}`;
  /** Appends at least one batch, until an error or, if only reads will fail, enough receipts. */
  const write = async (place: number) => {
    let batches = 0;
    do {
      const batch = makeBatch(seed, sourceOf(place), batchIdOf(batches++, "small"));
      const entry = ledger.submit(batch);
      try {
        ledger.acknowledge(entry, await log.impatient.append(batch));
      } catch (error) {
        if (!(error instanceof EventLogError)) throw error;
        errors.push(error);
        return;
      }
    } while (kind !== "read" || ledger.acknowledged.length < receipts);
  };
  try {
    await log.start();
    const followed = kind === "read" ? null : endOfFollow(log.impatient);
    const writers = Array.from({ length: WRITERS }, (_, place) => write(place));
    while (ledger.acknowledged.length < receipts) {
      const [error] = errors;
      claim(error === undefined, `an append to a healthy disk failed: ${error?.message}`);
      await delay(POLL_MS);
    }
    if (kind === "read") {
      await Promise.all(writers);
      // Neither the service nor the guest's page cache may still hold the log.
      await log.cutPower();
      await log.start();
      log.machine.enter("drop caches");
      await log.machine.untilPrinted("powercut: dropped");
    }
    await log.machine.failDisk(kind);
    if (kind === "read") {
      await write(WRITERS);
    } else {
      await Promise.all(writers);
      claim(await followed === "writer_poisoned", `a follow ended with ${await followed}`);
      await refusalOf(log.impatient.retire(sourceOf(0)), "writer_poisoned");
    }
    for (const error of errors) {
      // A read error can also hit a read by the writer, before anything is written.
      const isRight = error.code === "writer_poisoned" ||
        kind === "read" && error.code === "internal_error";
      claim(isRight, `an append failed with ${error.status} ${error.code}: ${error.message}`);
      tally.add("refusals");
    }
    await readOrFail(log.impatient, new Audit(ledger, new Map()), tally);
    await log.cutPower();
    tally.add("kills");
    await log.start();
    const audit = new Audit(ledger, new Map());
    await audit.catchUp(log.client, new AbortController().signal);
    tally.add("audited", audit.length);
    tally.add("batches", ledger.acknowledged.length);
    await log.cutPower();
    await checkDisk(disk, fileSystem, new Audit(ledger, new Map()), ledger.due());
  } finally {
    await log.dispose();
  }
}

/** Follows the log to the end of the response. @returns the reason in its last record. */
async function endOfFollow(client: EventLogClient): Promise<string> {
  for await (const record of client.followRecords()) {
    if (record.type === "end") return record.reason;
  }
  return "no end record";
}

/** Replays the log. The replay must be complete and correct, or fail. */
async function readOrFail(client: EventLogClient, audit: Audit, tally: Tally): Promise<void> {
  try {
    await audit.catchUp(client, new AbortController().signal);
    tally.add("pages");
  } catch (error) {
    const isBroken = error instanceof ConnectionError ||
      error instanceof EventLogError && error.code === "internal_error";
    if (!isBroken) throw error;
    tally.add("aborts");
  }
}
