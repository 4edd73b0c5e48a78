/**
 * Tests whether a directory can be trusted with a log: checks the file system type, probes the
 * guarantees that the log needs, then runs a short soak, all in a temporary subdirectory.
 */
import { mkdir, mkdtemp, realpath, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { probeDisk, type SyncLatency } from "../support/disk_probe.ts";
import { THIS_RUNTIME } from "../support/runtimes.ts";
import { type Disturbance, DISTURBANCES } from "../soak/disturbances.ts";
import { runSoak, type SoakOptions, type SoakResult } from "../soak/run.ts";
import { type FileSystem, judgeFileSystem } from "./file_system.ts";
import { ProbeError, probeLock, probeRename, probeWrites } from "./probes.ts";

const { kill, killStart, killSeal, seal, stop, verify } = DISTURBANCES;
/** At least eight kills, and one each of the other faults that involve files. */
export const SELFTEST_DECK: readonly Disturbance[] = [
  ...[kill, kill, kill, kill, kill, killStart, killSeal, seal, stop, verify],
];

/** Duration of the load between two faults. It is short, because the operator is waiting. */
const LOAD_MS_MAX = 1500;

/**
 * A disk that is faster than this either has a power-protected cache or does not sync at all. The
 * test cannot distinguish the two.
 */
const PLAUSIBLE_SYNC_MS = 0.01;

/** The directory to test, and the options of the short soak. */
type SelfTestOptions = Pick<SoakOptions, "dir" | "seed" | "deck" | "report" | "signal">;

/** The verdict on a directory. */
export interface Verdict {
  isTrusted: boolean;
  /** The reasons, on one line. */
  reason: string;
}

/** @throws the signal's abort reason. */
export async function selfTest(options: SelfTestOptions): Promise<Verdict> {
  try {
    return await testFolder(options);
  } catch (error) {
    options.signal.throwIfAborted();
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { isTrusted: false, reason: `${reason}; ${adviceFor(error)}` };
  }
}

/** Returns advice for the operator. */
function adviceFor(error: unknown): string {
  if (error instanceof ProbeError) return "choose a directory on a different file system";
  if (error instanceof Error && "code" in error) {
    return "use a directory with free space that this user can write to";
  }
  return "check the kernel log for disk errors, and choose a different disk";
}

async function testFolder(options: SelfTestOptions): Promise<Verdict> {
  const { dir, report } = options;
  const { type } = await statfs(dir);
  const fileSystem = judgeFileSystem(type, process.platform);
  if (fileSystem.doubt !== null) {
    return { isTrusted: false, reason: `${fileSystem.name}: ${fileSystem.doubt}` };
  }
  const folder = await mkdtemp(join(await realpath(dir), ".selftest-"));
  try {
    report(`probing ${fileSystem.name} in ${folder}`);
    const latency = await probe(folder);
    report(`running a short soak test with kills`);
    const soak = { dir: folder, runtimes: [THIS_RUNTIME], loadMsMax: LOAD_MS_MAX };
    const result = await runSoak({ ...options, ...soak });
    return { isTrusted: true, reason: summarize(fileSystem, latency, result) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function probe(folder: string): Promise<SyncLatency> {
  const root = join(folder, "probes");
  await mkdir(root);
  const storage = fileStorage(root);
  await probeWrites(storage);
  await probeRename(root, storage);
  await probeLock(root);
  return probeDisk(root);
}

function summarize({ name }: FileSystem, latency: SyncLatency, { tally }: SoakResult): string {
  const { p50Ms, p99Ms } = latency;
  const speed = `fdatasync p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;
  const doubt = p50Ms < PLAUSIBLE_SYNC_MS
    ? " (too fast for a disk without a power-protected cache; make sure that the disk syncs)"
    : "";
  const kept = `no batch lost (kills: ${tally.of("kills")}, batches: ${tally.of("batches")})`;
  return `${name}, ${speed}${doubt}, renames and locks work, ${kept}`;
}
