/**
 * `deno task powercut --fs NAME [--cuts N | --states N | --errors N] [--seed S] [--dir DIR]
 * [--no-fsync]`
 *
 * Serves a log in a virtual machine, cuts its power at random times, starts it again, and checks
 * that no acknowledged event is missing. Exit status 0: nothing was lost. 1: data was lost, and
 * the disk image is kept. 2: bad arguments, or a requirement is missing. Requires root.
 *
 * - `--states N` records every disk write instead of cutting the power, and checks N disk states
 *   that a power failure could have left.
 * - `--errors N` makes N disks fail instead: all writes, flushes or reads return EIO.
 * - `--no-fsync` turns every fsync by the service into a no-op. The run must then lose events and
 *   exit with status 1.
 */
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { cutPowerRepeatedly } from "./powercut/cuts.ts";
import { checkDiskStates } from "./powercut/disk_states.ts";
import { checkDiskErrors } from "./powercut/disk_errors.ts";
import { FILE_SYSTEMS, makeDisk, withMounted } from "./powercut/disks.ts";
import { buildInitramfs } from "./powercut/initramfs.ts";
import { bootAndSave } from "./powercut/machine.ts";
import { fetchPackages, missingPrograms } from "./powercut/packages.ts";
import { Tally } from "./soak/tally.ts";
import { Violation } from "./soak/violation.ts";
import { SEED } from "./support/random.ts";
import { report, runTool } from "./support/run_tool.ts";
import { absenceOf, executableOf } from "./support/runtimes.ts";

/** Campaigns by option name, and what each counts. */
const CAMPAIGNS = {
  cuts: { unit: "power cuts", run: cutPowerRepeatedly },
  states: { unit: "disk states", run: checkDiskStates },
  errors: { unit: "failing disks", run: checkDiskErrors },
};
type CampaignName = keyof typeof CAMPAIGNS;
const NAMES = Object.keys(CAMPAIGNS) as CampaignName[];
const CUTS_DEFAULT = 3;
const EXIT_OK = 0;
const EXIT_LOST = 1;
/** Tail size that triggers rotation and sealing, small enough that power cuts interrupt both. */
const ROTATE_BYTES = 64 * 1024;
/** Path inside the virtual machine. */
const LIBEATMYDATA = "/lib/eatmydata.so";

/**
 * @throws {Error} if an argument is invalid, a required program is not installed, the host cannot
 *   mount the file system, or the kernel cannot be downloaded.
 */
async function prepare(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      fs: { type: "string", default: "ext4" },
      cuts: { type: "string" },
      seed: { type: "string", default: String(SEED) },
      dir: { type: "string", default: join(tmpdir(), "powercut") },
      states: { type: "string" },
      errors: { type: "string" },
      "no-fsync": { type: "boolean", default: false },
    },
  });
  const chosen = NAMES.filter((name) => values[name] !== undefined);
  const [campaign = "cuts"] = chosen;
  const count = Number(values[campaign] ?? CUTS_DEFAULT);
  const seed = Number(values.seed);
  const fileSystem = FILE_SYSTEMS[values.fs];
  if (fileSystem === undefined) {
    throw new Error(`--fs must be one of ${Object.keys(FILE_SYSTEMS).join()}, got ${values.fs}`);
  }
  if (chosen.length > 1 || !Number.isSafeInteger(count) || count < 1) {
    throw new Error("one of --cuts, --states and --errors must be an integer above 0");
  }
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed must be an integer, got ${values.seed}`);
  const missing = missingPrograms(fileSystem);
  if (missing !== null) throw new Error(`cannot start a virtual machine: ${missing}`);
  const node = executableOf("node");
  if (node === null) throw new Error(absenceOf("node"));
  const [folder, isSynced] = [resolve(values.dir), !values["no-fsync"]];
  await mkdir(folder, { recursive: true });
  const probe = join(folder, "probe.img");
  await makeDisk(probe, fileSystem);
  await withMounted(probe, fileSystem, async () => {});
  await rm(probe);
  const packages = await fetchPackages(folder);
  const synced = isSynced ? "" : ", without fsync";
  const name = `${count} ${CAMPAIGNS[campaign].unit}, ${values.fs}, seed ${seed}${synced}`;
  return { name, fileSystem, campaign, count, seed, folder, node, packages, isSynced };
}

async function powercut(given: Awaited<ReturnType<typeof prepare>>): Promise<number> {
  const { name, fileSystem, count, seed, folder, isSynced } = given;
  const saved = {
    kernel: given.packages.kernel,
    initramfs: await buildInitramfs(folder, given.packages, given.node),
    fileSystem,
    rotateBytes: ROTATE_BYTES,
    preload: isSynced ? undefined : LIBEATMYDATA,
    memory: join(folder, "memory"),
    state: join(folder, "state"),
  };
  await bootAndSave(saved);
  report(name);
  const tally = new Tally();
  try {
    await CAMPAIGNS[given.campaign].run({ saved, count, seed, folder, tally, report });
    process.stdout.write(`${name}: nothing lost. ${tally}\n`);
    return EXIT_OK;
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    process.stdout.write(`${name}: FAILED. ${error.message}\n`);
    return EXIT_LOST;
  }
}

await runTool(prepare, powercut);
