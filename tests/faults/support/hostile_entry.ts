/** Foreign directory entries that replace entries in a deployment. */
import { spawnSync } from "node:child_process";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";

/** An entry that `put` creates at `path`. The entry it replaces has been moved to `original`. */
export interface HostileEntry {
  title: string;
  /** @returns a cleanup function. */
  put(path: string, original: string): Promise<void | (() => Promise<void>)>;
}

export const PIPE: HostileEntry = { title: "a pipe", put: (path) => make("mkfifo", [path]) };
/** A link to an entry of the right kind elsewhere. */
export const LINK: HostileEntry = {
  title: "a symlink to the original",
  put: (path, original) => symlink(original, path),
};

/** Entries that are not even links to one of the right kind. */
export const FOREIGN_ENTRIES: HostileEntry[] = [
  { title: "a dangling symlink", put: (path) => symlink("nowhere", path) },
  { title: "a symlink to itself", put: (path) => symlink(path, path) },
  { title: "a symlink to /dev/zero", put: (path) => symlink("/dev/zero", path) },
  PIPE,
  { title: "a socket", put: listen },
  { title: "a directory with a file", put: makeFolder },
];
// Only root can create a device; other users get a symlink to one.
if (process.getuid?.() === 0) {
  FOREIGN_ENTRIES.push({ title: "a device", put: (path) => make("mknod", [path, "c", "1", "5"]) });
}

function make(program: string, args: string[]): Promise<void> {
  const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
  return Promise.resolve();
}

/** Listens on a short path, because socket paths have a length limit. */
async function listen(path: string): Promise<() => Promise<void>> {
  const server = createServer();
  const short = join("/tmp", `hostile-${process.pid}-${Math.random().toString(36).slice(2)}`);
  await new Promise<void>((resolve) => server.listen(short, resolve));
  await rename(short, path);
  return async () => {
    await new Promise((resolve) => server.close(resolve));
    await rm(short, { force: true });
  };
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path);
  await writeFile(join(path, "precious"), "precious");
}
