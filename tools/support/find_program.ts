/** Finds installed programs, as a shell does. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";

/** Debian installs servers and disk tools here; only root has them in its `PATH`. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/sbin"];

/** The folders of `PATH`, then those of the system. */
export function programFolders(): string[] {
  return [...(process.env["PATH"] ?? "").split(delimiter), ...SYSTEM_FOLDERS];
}

/** Path of the first such executable in some folders; null if there is none. */
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
