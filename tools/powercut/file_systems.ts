/** The file systems under test, by the name that `--fs` takes. */
import { execFile } from "node:child_process";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { findProgram } from "../support/find_program.ts";

const run = promisify(execFile);

export interface FileSystem {
  /** Program that makes one, with its arguments in front of the path. */
  make: readonly [program: string, ...args: string[]];
  /** As mount(8) takes it. */
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

/** Makes an empty file system in a new sparse file. */
export async function makeDisk(path: string, bytes: number, fileSystem: FileSystem): Promise<void> {
  const file = await open(path, "w");
  await file.truncate(bytes);
  await file.close();
  const [program, ...args] = fileSystem.make;
  await run(findProgram(program)!, [...args, path]);
}
