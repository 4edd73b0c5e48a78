/**
 * `deno task powercut --fs NAME --cuts N --seed S [--dir DIR] [--no-fsync]`: serves a log in a
 * virtual machine, cuts its power at random moments, boots it again, and checks that everything
 * acknowledged is there. A line for each cut on standard error, a closing line on standard output.
 * Exit 0: nothing was lost. 1: something was, and the disk is kept. 2: bad arguments, or qemu
 * is missing.
 *
 * `--no-fsync` makes every fsync of the service a no-op: it must lose events, and exit 1.
 */
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs, promisify } from "node:util";
import { endProcess } from "../src/runtime/end_process.ts";
import { FILE_SYSTEMS, type FileSystemName } from "./powercut/file_systems.ts";
import { buildImages } from "./powercut/images.ts";
import { fetchPackages, missingPrograms } from "./powercut/packages.ts";
import { cutPowerRepeatedly } from "./powercut/run.ts";
import { Violation } from "./soak/violation.ts";
import { absenceOf, executableOf } from "./support/runtimes.ts";

const EXIT_LOST = 1;
const EXIT_USAGE = 2;
const SEED_MAX = 2 ** 31;
/** In the machine. */
const LIBEATMYDATA = "/lib/eatmydata.so";

interface Arguments {
  fileSystem: FileSystemName;
  cuts: number;
  seed: number;
  folder: string;
  isSynced: boolean;
}

/** @throws {Error} that says what is wrong with the arguments. */
function readArguments(args: string[]): Arguments {
  const { values } = parseArgs({
    args,
    options: {
      fs: { type: "string", default: "ext4" },
      cuts: { type: "string", default: "3" },
      seed: { type: "string", default: String(Math.floor(Math.random() * SEED_MAX)) },
      dir: { type: "string", default: join(tmpdir(), "powercut") },
      "no-fsync": { type: "boolean", default: false },
    },
  });
  const [cuts, seed] = [Number(values.cuts), Number(values.seed)];
  if (!(values.fs in FILE_SYSTEMS)) {
    throw new Error(
      `--fs must be one of ${Object.keys(FILE_SYSTEMS).join(", ")}, got ${values.fs}`,
    );
  }
  if (!(Number.isSafeInteger(cuts) && cuts > 0)) {
    throw new Error(`--cuts must be at least 1, got ${values.cuts}`);
  }
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed must be an integer, got ${values.seed}`);
  const fileSystem = values.fs as FileSystemName;
  return { fileSystem, cuts, seed, folder: resolve(values.dir), isSynced: !values["no-fsync"] };
}

/** @throws {Error} nothing says where a Node is, or it does not run. */
async function nodePath(): Promise<string> {
  const node = executableOf("node");
  if (node === null) throw new Error(absenceOf("node"));
  const { stdout } = await promisify(execFile)(node, ["-p", "process.execPath"]);
  return stdout.trim();
}

async function powercut({ fileSystem, cuts, seed, folder, isSynced }: Arguments): Promise<void> {
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  const name = `${fileSystem}, seed ${seed}${isSynced ? "" : ", without fsync"}`;
  await mkdir(folder, { recursive: true });
  const images = await buildImages(folder, await fetchPackages(folder), await nodePath());
  report(`${cuts} power cuts: ${name}`);
  try {
    const tally = await cutPowerRepeatedly({
      images,
      fileSystem: FILE_SYSTEMS[fileSystem],
      cuts,
      seed,
      folder,
      preload: isSynced ? undefined : LIBEATMYDATA,
      report,
    });
    process.stdout.write(`${cuts} power cuts passed: ${tally} (${name})\n`);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    process.stdout.write(`power cuts failed: ${error.message} (${name})\n`);
    process.exitCode = EXIT_LOST;
  }
}

try {
  const given = readArguments(process.argv.slice(2));
  const missing = await missingPrograms();
  if (missing !== null) throw new Error(`power cuts need a virtual machine: ${missing}`);
  await powercut(given);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = EXIT_USAGE;
}
endProcess(Number(process.exitCode ?? 0));
