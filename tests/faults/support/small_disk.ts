/**
 * Full file systems, in memory or in a file. Each function returns a disk, or the reason why this
 * machine does not support that kind. Both need root.
 */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

export interface SmallDisk {
  /** The directory with little space. */
  dir: string;
  /** Frees space. */
  makeRoom(): Promise<void>;
  /** Removes the disk but not its parent directory. */
  remove(): void;
}

/** @returns the disk, or the reason why there is none. */
export type SmallDiskMaker = (folder: string) => Promise<SmallDisk | string>;

const MIB = 1024 * 1024;
/** Approximate space available for ingest. */
const ROOM_BYTES = MIB;
/** Space that `makeRoom()` frees. */
const FILLER_BYTES = MIB;

/** An in-memory file system. */
export const memoryDisk: SmallDiskMaker = async (folder) => {
  const dir = join(folder, "mnt");
  await mkdir(dir);
  const options = `mode=0700,size=${ROOM_BYTES + FILLER_BYTES}`;
  const fault = run("mount", ["-t", "tmpfs", "-o", options, "none", dir]);
  return fault ?? filledDisk(dir);
};

/** An ext4 file system in a file. Needs `mkfs.ext4` and a loop device. */
export const imageDisk: SmallDiskMaker = async (folder) => {
  const dir = join(folder, "mnt");
  const image = join(folder, "disk.img");
  await mkdir(dir);
  fill(image, ROOM_BYTES + FILLER_BYTES + MIB);
  const fault = run("mkfs.ext4", ["-q", "-m", "0", "-O", "^has_journal", image]) ??
    run("mount", ["-o", "loop", image, dir]);
  return fault ?? filledDisk(dir);
};

function filledDisk(dir: string): SmallDisk {
  const filler = join(dir, "filler");
  fill(filler, FILLER_BYTES);
  return {
    dir,
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
