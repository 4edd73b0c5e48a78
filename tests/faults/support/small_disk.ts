/**
 * Directories with little space: a file system in memory or in a file, or a file size limit. Each
 * function returns a disk, or the reason why this machine does not support that kind.
 */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

export interface SmallDisk {
  /** The directory with little space. */
  dir: string;
  /** Whether new files also run out of space. */
  isFull: boolean;
  /** The command that wraps a program so that it runs short of space. */
  wrapper: string[];
  /** Frees space, including for a running program. */
  makeRoom(pid: number): Promise<void>;
  /** Ends the shortage and removes the disk but not its parent directory. */
  remove(): void;
}

/** @returns the disk, or the reason why there is none. */
export type SmallDiskMaker = (folder: string) => Promise<SmallDisk | string>;

const MIB = 1024 * 1024;
/** Approximate space available for ingest. */
const ROOM_BYTES = MIB;
/** Space that `makeRoom()` frees. */
const FILLER_BYTES = MIB;

/** An in-memory file system. Needs root. */
export const memoryDisk: SmallDiskMaker = async (folder) => {
  const dir = join(folder, "mnt");
  await mkdir(dir);
  const fault = run("mount", [
    "-t",
    "tmpfs",
    "-o",
    `mode=0700,size=${ROOM_BYTES + FILLER_BYTES}`,
    "none",
    dir,
  ]);
  return fault ?? filledDisk(dir);
};

/** An ext4 file system in a file. Needs root, `mkfs.ext4` and a loop device. */
export const imageDisk: SmallDiskMaker = async (folder) => {
  const dir = join(folder, "mnt");
  const image = join(folder, "disk.img");
  await mkdir(dir);
  fill(image, ROOM_BYTES + FILLER_BYTES + MIB);
  const fault = run("mkfs.ext4", ["-q", "-m", "0", "-O", "^has_journal", image]) ??
    run("mount", ["-o", "loop", image, dir]);
  return fault ?? filledDisk(dir);
};

/**
 * A file size limit: a write that crosses it is cut short, and the next one fails with EFBIG.
 * SIGXFSZ is ignored, as under some service managers. Needs `prlimit`.
 */
export const fileSizeLimit: SmallDiskMaker = async (folder) => {
  const fault = run("prlimit", ["--version"]);
  if (fault !== null) return fault;
  const dir = join(folder, "limited");
  await mkdir(dir);
  const limit = ["prlimit", `--fsize=${ROOM_BYTES}:unlimited`];
  return {
    dir,
    isFull: false,
    wrapper: ["sh", "-c", `trap '' XFSZ; exec "$@"`, "sh", ...limit],
    makeRoom(pid) {
      const fault = run("prlimit", [`--pid=${pid}`, "--fsize=unlimited:unlimited"]);
      if (fault !== null) throw new Error(fault);
      return Promise.resolve();
    },
    remove() {},
  };
};

function filledDisk(dir: string): SmallDisk {
  const filler = join(dir, "filler");
  fill(filler, FILLER_BYTES);
  return {
    dir,
    isFull: true,
    wrapper: [],
    makeRoom: () => rm(filler),
    remove() {
      const fault = run("umount", ["-l", dir]);
      if (fault !== null) throw new Error(fault);
    },
  };
}

function fill(path: string, sizeBytes: number): void {
  const fd = openSync(path, "w");
  writeSync(fd, new Uint8Array(sizeBytes));
  closeSync(fd);
}

/** Runs a program. @returns an error message, or null on success. */
export function run(program: string, args: string[]): string | null {
  const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (error !== undefined) return `cannot run ${program}: ${error.message}`;
  return status === 0 ? null : `${program} exited with ${status}: ${stderr.trim()}`;
}
