/** Finds installed programs through PATH, like a shell. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";

/** Debian installs servers and disk tools here, but only root has these in `PATH`. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/sbin"];

/** Returns the directories in `PATH`, followed by the system's. */
export function programFolders(): string[] {
  return [...(process.env["PATH"] ?? "").split(delimiter), ...SYSTEM_FOLDERS];
}

/** Returns the first executable with that name in the directories; null if there is none. */
export function findProgram(name: string, folders: readonly string[] = programFolders()) {
  const paths = folders.filter((folder) => folder !== "").map((folder) => join(folder, name));
  return paths.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
