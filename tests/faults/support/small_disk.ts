/**
 * Full file systems, in memory or in a file. Both need root.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";

export interface SmallDisk {
  /** The directory with little space. */
  dir: string;
  /** Frees space. */
  makeRoom(): Promise<void>;
  /** Removes the disk but not its parent directory. */
  remove(): void;
}

const MIB = 1024 * 1024;
/** Approximate space available for ingest. */
const ROOM_BYTES = MIB;
/** Space that `makeRoom()` frees. */
const FILLER_BYTES = MIB;

/** Mounts a file system on a directory. @returns an error message, or null on success. */
export type Mount = (folder: string, dir: string) => string | null;

/** An in-memory file system. */
export const mountMemory: Mount = (_folder, dir) => {
  const options = `mode=0700,size=${ROOM_BYTES + FILLER_BYTES}`;
  return run("mount", ["-t", "tmpfs", "-o", options, "none", dir]);
};

/** An ext4 file system in a file. Needs `mkfs.ext4` and a loop device. */
export const mountImage: Mount = (folder, dir) => {
  const image = join(folder, "disk.img");
  writeFileSync(image, new Uint8Array(ROOM_BYTES + FILLER_BYTES + MIB));
  return run("mkfs.ext4", ["-q", "-m", "0", "-O", "^has_journal", image]) ??
    run("mount", ["-o", "loop", image, dir]);
};

/** @returns the disk, or the reason why there is none. */
export function makeDisk(folder: string, mount: Mount): SmallDisk | string {
  const dir = join(folder, "mnt");
  mkdirSync(dir);
  const fault = mount(folder, dir);
  if (fault !== null) return fault;
  const filler = join(dir, "filler");
  writeFileSync(filler, new Uint8Array(FILLER_BYTES));
  return {
    dir,
    makeRoom: () => rm(filler),
    remove() {
      const fault = run("umount", ["-l", dir]);
      if (fault !== null) throw new Error(fault);
    },
  };
}

/** Runs a program. @returns an error message, or null on success. */
export function run(program: string, args: string[]): string | null {
  const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (error !== undefined) return `cannot run ${program}: ${error.message}`;
  return status === 0 ? null : `${program} exited with ${status}: ${stderr.trim()}`;
}
