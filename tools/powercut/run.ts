/**
 * Cuts the power of a virtual machine that serves a log, again and again, and holds what is left
 * against everything that was acknowledged and shown before. Disks last for some cuts; what
 * happens follows from the seed, when it happens from the machine.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Audit, type KnownHeads } from "../soak/audit.ts";
import { LogFollower } from "../soak/follower.ts";
import { Ledger } from "../soak/ledger.ts";
import type { Load } from "../soak/load.ts";
import { Observations } from "../soak/observations.ts";
import { Tally } from "../soak/tally.ts";
import { claim, Violation } from "../soak/violation.ts";
import { randomOf } from "../soak/workload.ts";
import { Writer } from "../soak/writer.ts";
import { type FileSystem, makeDisk } from "./file_systems.ts";
import type { Images } from "./images.ts";
import { PoweredLog } from "./powered_log.ts";

const WRITERS = 8;
const FOLLOWERS = 2;
const DISK_BYTES = 2 * 1024 * 1024 * 1024;
/** So many cuts find the same log grown; then a new disk keeps reading it back short. */
const CUTS_PER_DISK = 20;
/** Small, so that cuts strike rotations and sealing. */
const ROTATE_BYTES = 1024 * 1024;
/** Load between two cuts. */
const LOAD_MS_MAX = 5_000;

export interface PowerCutOptions {
  images: Images;
  fileSystem: FileSystem;
  cuts: number;
  seed: number;
  /** Folder for the disk. */
  folder: string;
  preload?: string | undefined;
  report: (line: string) => void;
}

/** Cuts the power so often. @returns what was done. @throws {Violation} something was lost. */
export async function cutPowerRepeatedly(options: PowerCutOptions): Promise<Tally> {
  const tally = new Tally();
  for (let disk = 0; tally.of("kills") < options.cuts; disk++) {
    const path = join(options.folder, `disk-${options.seed}-${disk}.img`);
    await makeDisk(path, DISK_BYTES, options.fileSystem);
    await wearDisk(options, disk, path, tally);
    await rm(path);
  }
  return tally;
}

async function wearDisk(
  options: PowerCutOptions,
  number: number,
  disk: string,
  tally: Tally,
): Promise<void> {
  const { images, fileSystem, preload, seed, cuts, report } = options;
  const random = randomOf(seed, `disk ${number}`);
  const ending = new AbortController();
  const failing = new AbortController();
  const log = await PoweredLog.create({
    images,
    disk,
    fileSystem,
    rotateBytes: ROTATE_BYTES,
    preload,
  });
  const load: Load = {
    seed,
    client: log.client,
    ledger: new Ledger(),
    observations: new Observations(),
    tally,
    ending: ending.signal,
    failing: failing.signal,
  };
  const heads: KnownHeads = new Map();
  const audit = new Audit(load.ledger, heads);
  const readBack = async (reader: Audit) => {
    const before = reader.history.length;
    await reader.catchUp(log.client, failing.signal);
    tally.add("audited", reader.history.length - before);
    tally.add("checked", load.observations.check(reader.history));
    const said = await log.verify();
    claim(said.endsWith("exit 0\n"), `verify --chain: ${said}`);
    tally.add("verifies");
  };
  try {
    await log.boot();
    const clients = startClients(load, number, failing);
    for (let cut = 0; cut < CUTS_PER_DISK && tally.of("kills") < cuts; cut++) {
      const startMs = performance.now();
      await delay(random() * LOAD_MS_MAX, undefined, { signal: failing.signal });
      await log.cutPower();
      tally.add("kills");
      await log.boot();
      await readBack(audit);
      failing.signal.throwIfAborted();
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      report(`cut ${tally.of("kills")} of ${cuts} after ${seconds} s: ${tally}`);
    }
    ending.abort();
    await clients;
    failing.signal.throwIfAborted();
    // All of it once more from the beginning.
    await readBack(new Audit(load.ledger, heads));
    audit.checkHeads();
  } catch (error) {
    const cause = failing.signal.aborted ? failing.signal.reason : error;
    throw new Violation(
      `${(cause as Error).message}; the disk is ${disk}; console: ${log.console}`,
      {
        cause,
      },
    );
  } finally {
    failing.abort(new Error("the disk is done"));
    await log.dispose();
  }
}

/** Resolves when all have ended. */
async function startClients(load: Load, disk: number, failing: AbortController): Promise<void> {
  const named = <T>(kind: string, count: number, make: (name: string) => T) =>
    Array.from({ length: count }, (_, place) => make(`${kind}-${disk}-${place}`));
  const clients = [
    ...named("writer", WRITERS, (name) => new Writer(load, name)),
    ...named("follower", FOLLOWERS, (name) => new LogFollower(load, name)),
  ];
  await Promise.all(clients.map((client) => client.run().catch((error) => failing.abort(error))));
}
