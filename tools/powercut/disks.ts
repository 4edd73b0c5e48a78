/** Disk images with the file systems under test. Mounting them on the host requires root. */
import { execFile } from "node:child_process";
import { mkdtemp, open, rmdir } from "node:fs/promises";
import { promisify } from "node:util";
import { findProgram } from "../support/find_program.ts";

const run = promisify(execFile);

export interface FileSystem {
  /** The mkfs program with its arguments, without the path. */
  make: readonly [program: string, ...args: string[]];
  /** Type for mount(8). */
  type: string;
  options: string;
}

/** The file systems by their `--fs` name. */
export const FILE_SYSTEMS: Record<string, FileSystem> = {
  "ext4": { make: ["mkfs.ext4", "-q", "-F"], type: "ext4", options: "data=ordered" },
  "ext4-writeback": { make: ["mkfs.ext4", "-q", "-F"], type: "ext4", options: "data=writeback" },
  "xfs": { make: ["mkfs.xfs", "-q", "-f"], type: "xfs", options: "rw" },
  "btrfs": { make: ["mkfs.btrfs", "-q", "-f"], type: "btrfs", options: "rw" },
};

/** The smallest size that all file systems support, since disks are copied often. */
export const DISK_BYTES = 320 * 1024 * 1024;

/** Creates a sparse disk image with an empty file system. */
export async function makeDisk(path: string, { make }: FileSystem): Promise<void> {
  const file = await open(path, "w");
  await file.truncate(DISK_BYTES);
  await file.close();
  const [program, ...args] = make;
  await run(findProgram(program)!, [...args, path]);
}

/** Copies a sparse disk image. */
export async function copyDisk(from: string, to: string): Promise<void> {
  await run("cp", ["--sparse=always", from, to]);
}

/** Mounts a disk image on the host while the function runs. */
export async function withMounted<T>(
  disk: string,
  { type, options }: FileSystem,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(`${disk}-`);
  try {
    await run("mount", ["-t", type, "-o", `loop,${options}`, disk, folder]);
    return await use(folder).finally(() => run("umount", [folder]));
  } finally {
    await rmdir(folder);
  }
}
