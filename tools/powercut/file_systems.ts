/** The file systems under test, by their `--fs` name. */
import { execFile } from "node:child_process";
import { open } from "node:fs/promises";
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

export const FILE_SYSTEMS = {
  ext4: { make: ["mkfs.ext4", "-q", "-F"], type: "ext4", options: "data=ordered" },
  "ext4-writeback": { make: ["mkfs.ext4", "-q", "-F"], type: "ext4", options: "data=writeback" },
  xfs: { make: ["mkfs.xfs", "-q", "-f"], type: "xfs", options: "rw" },
  btrfs: { make: ["mkfs.btrfs", "-q", "-f"], type: "btrfs", options: "rw" },
} as const satisfies Record<string, FileSystem>;

export type FileSystemName = keyof typeof FILE_SYSTEMS;

/** The smallest size that all file systems support, since disks are copied often. */
export const DISK_BYTES = 320 * 1024 * 1024;

/** Creates a sparse disk image with an empty file system. */
export async function makeDisk(path: string, fileSystem: FileSystem): Promise<void> {
  const file = await open(path, "w");
  await file.truncate(DISK_BYTES);
  await file.close();
  const [program, ...args] = fileSystem.make;
  await run(findProgram(program)!, [...args, path]);
}

/** Copies a sparse disk image. */
export async function copyDisk(from: string, to: string): Promise<void> {
  await run("cp", ["--sparse=always", from, to]);
}
