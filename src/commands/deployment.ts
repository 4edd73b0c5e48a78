/**
 * The files in a deployment, created and checked by `init`:
 *
 *   <dir>/service.toml   published last: a deployment exists once this file does
 *   <dir>/data/          owned by the service; must contain nothing else
 *   <dir>/data/log/      the log; empty until the first writer starts
 *
 * Checks never overwrite or delete anything and follow no symlinks.
 */
import { lstatSync, readdirSync, type Stats } from "node:fs";
import { join, resolve } from "node:path";
import * as names from "../log/storage/file_names.ts";
import { errorCode } from "../log/storage/storage.ts";
import { operationalError, usageError } from "./exit.ts";

export const CONFIG_FILE = "service.toml";

export type DeploymentPaths = ReturnType<typeof deploymentPaths>;

/** @param dir Absolute path. */
export function deploymentPaths(dir: string) {
  const data = join(dir, "data");
  return { dir, config: join(dir, CONFIG_FILE), data, log: join(data, "log") };
}

/** Resolves a path. @throws {CommandError} if it is not UTF-8: runtimes read U+FFFD, or fail. */
export function absolutePath(path: string): string {
  try {
    const absolute = resolve(path);
    if (!absolute.includes("\uFFFD")) return absolute;
  } catch {
    // Deno does not return a working directory that is not UTF-8.
  }
  throw usageError(`${path}: its absolute path is not valid UTF-8; rename the directory`);
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

type EntryKind = "file" | "directory" | "socket" | "symlink" | "special file";

const LOG_ENTRIES = new Map<string, readonly EntryKind[]>([
  [names.LOCK_FILE, ["file"]],
  [names.MANIFEST_FILE, ["file"]],
  [names.MANIFEST_TEMPORARY_FILE, ["file"]],
  [names.TAIL_FILE, ["file"]],
  [names.TAIL_TEMPORARY_FILE, ["file"]],
  [names.PENDING_FOLDER, ["directory"]],
  [names.SEGMENTS_FOLDER, ["directory"]],
  [names.INDEX_FOLDER, ["directory"]],
]);

const MISSING_ADVICE = "restore it from a backup, create it empty for a new log";

/** Database files from version 0.1, which are ignored. */
const OLD_WAREHOUSE = /^(warehouse\.duckdb|\.warehouse\.duckdb\.candidate-)/;

/**
 * Checks the directories of an existing deployment.
 * @throws {CommandError} with exit status 1 if an entry is missing or unexpected.
 */
export function checkDeployment(paths: DeploymentPaths): void {
  for (const folder of [paths.data, paths.log]) {
    if (isKind(folder, "directory")) continue;
    throw operationalError(`${folder}: is missing, but ${paths.config} exists; ${MISSING_ADVICE}`);
  }
  checkEntries(paths.data, dataKinds);
  checkEntries(paths.log, (name) => LOG_ENTRIES.get(name));
  checkManifest(paths.log);
}

/**
 * Requires a manifest if the log holds events. Checks for the manifest last, since a concurrent
 * first writer creates it before any event. An interrupted first startup leaves an empty tail and
 * directories but no manifest.
 */
function checkManifest(log: string): void {
  const tail = lstatSync(join(log, names.TAIL_FILE), { throwIfNoEntry: false });
  const holdsFiles = [names.PENDING_FOLDER, names.SEGMENTS_FOLDER].map((name) => join(log, name))
    .some((folder) => isKind(folder, "directory") && readdirSync(folder).length > 0);
  const holdsEvents = holdsFiles || tail !== undefined && tail.size > 0;
  if (!holdsEvents || isKind(join(log, names.MANIFEST_FILE), "file")) return;
  const advice = "restore the whole directory from a backup";
  throw operationalError(`${log}: holds events but no ${names.MANIFEST_FILE}; ${advice}`);
}

/**
 * Checks a directory without a configuration, which may contain at most an empty log.
 * @throws {CommandError} with exit status 1 if an entry is unexpected.
 */
export function checkUncommitted(paths: DeploymentPaths): void {
  if (!isKind(paths.data, "directory")) return;
  checkEntries(paths.data, dataKinds);
  if (!isKind(paths.log, "directory") || readdirSync(paths.log).length === 0) return;
  const reason = `is not empty, but ${paths.config} is missing; restore that file`;
  throw operationalError(`${paths.log}: ${reason}`);
}

/** Returns the log directory. @throws {CommandError} if it is missing or a symlink. */
export function requireLogFolder(dataDir: string): string {
  const logDir = join(dataDir, "log");
  if (isKind(logDir, "directory")) return logDir;
  throw operationalError(`${logDir}: no such directory; ${MISSING_ADVICE}, or set [data] dir`);
}

/** Returns false if `path` does not exist. @throws {CommandError} if it is of another kind. */
export function isKind(path: string, ...required: EntryKind[]): boolean {
  const kind = entryKind(path);
  if (kind !== null && !required.includes(kind)) {
    throw operationalError(`${path}: is a ${kind}, but must be a ${required.join(" or ")}`);
  }
  return kind !== null;
}

function dataKinds(name: string): readonly EntryKind[] | undefined {
  if (name === "log") return ["directory"];
  if (name === "ground.sock") return ["socket"];
  return OLD_WAREHOUSE.test(name) ? ["file", "directory"] : undefined;
}

/**
 * Checks a directory's entries. A running writer may remove some of them during the check.
 * @param kindsOf returns the permitted kinds for an entry; undefined for an unexpected name.
 */
function checkEntries(
  folder: string,
  kindsOf: (name: string) => readonly EntryKind[] | undefined,
): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const kinds = kindsOf(name);
    if (kinds === undefined) {
      throw operationalError(`${path}: does not belong in ${folder}; move it elsewhere`);
    }
    isKind(path, ...kinds);
  }
}

/** Returns the kind of the entry at `path`, which may be a symlink; null if absent. */
export function entryKind(path: string): EntryKind | null {
  const stat = statOf(path, lstatSync);
  if (stat === null) return null;
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  return stat.isSocket() ? "socket" : "special file";
}

/** Returns null if there is no such path, also if a file is where it has a directory. */
export function statOf(path: string, stat: (path: string) => Stats): Stats | null {
  try {
    return stat(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return null;
    throw error;
  }
}
