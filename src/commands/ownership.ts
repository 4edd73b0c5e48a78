/** Who may read and write a deployment's files: the user that runs the service, and root. */
import { type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import type { Config } from "./config.ts";

const WRITE = 0o2;
const READ = 0o4;

/** Returns why others could change a directory's entries; null if they can't or it is absent. */
export function foreignFolder(path: string): string | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  const uid = process.getuid!();
  if ((stat.uid === uid || stat.uid === 0) && !mayOthers(WRITE, stat)) return null;
  const owner = `${stat.uid}:${stat.gid} with mode ${modeOf(stat)}`;
  return `${path}: owned by ${owner}, so users other than ${uid} can change what is in it; ` +
    "chown or chmod it";
}

/** Returns what others could change, and a token that they could read, in a served deployment. */
export function openToOthers({ path, dataDir, token }: Config): string[] {
  const folders = [dirname(path), dataDir, join(dataDir, "log")];
  const faults = folders.map(foreignFolder).filter((fault) => fault !== null);
  const stat = statSync(path);
  if (token !== "" && mayOthers(READ, stat)) {
    faults.push(`${path}: holds a token, but has mode ${modeOf(stat)}; run chmod 600 on it`);
  }
  return faults;
}

/** Whether others have a permission. Our own group may be ours alone, or made for the service. */
function mayOthers(permission: number, { mode, gid }: Stats): boolean {
  const others = gid === process.getgid!() ? permission : permission | permission << 3;
  return (mode & others) !== 0;
}

function modeOf({ mode }: Stats): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}
