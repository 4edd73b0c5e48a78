/**
 * The files in a deployment, created and checked by `init`:
 *
 *   <dir>/service.toml   published last: a deployment exists once this file does
 *   <dir>/data/          owned by the service; must contain nothing else
 *   <dir>/data/log/      the log; empty until the first writer starts
 *
 * Checks never overwrite or delete anything and follow no symlinks.
 */
import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import {
  LOCK_FILE,
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../log/storage/file_names.ts";
import { operationalError } from "./exit.ts";
import { errorCode } from "../log/storage/storage.ts";

export const CONFIG_FILE = "service.toml";

export interface DeploymentPaths {
  dir: string;
  config: string;
  data: string;
  log: string;
}

/** @param dir Absolute path. */
export function deploymentPaths(dir: string): DeploymentPaths {
  const data = join(dir, "data");
  return { dir, config: join(dir, CONFIG_FILE), data, log: join(data, "log") };
}

type EntryKind = "file" | "directory" | "socket" | "symlink" | "special file";

/** Returns the permitted kinds for an entry; null for an unexpected name. */
type EntryRule = (name: string) => readonly EntryKind[] | null;

const LOG_FILES = [
  LOCK_FILE,
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
];
const LOG_FOLDERS = [PENDING_FOLDER, SEGMENTS_FOLDER];

/** Database files from version 0.1, which are ignored. */
const OLD_WAREHOUSE = /^(warehouse\.duckdb|\.warehouse\.duckdb\.candidate-)/;

/**
 * Checks the directories of an existing deployment.
 * @throws {CommandError} with exit status 1 if an entry is missing or unexpected.
 */
export async function checkDeployment(paths: DeploymentPaths): Promise<void> {
  for (const folder of [paths.data, paths.log]) {
    if (!await isFolder(folder)) {
      throw operationalError(
        `${folder}: is missing, but ${paths.config} exists; restore it from a backup`,
      );
    }
  }
  await checkEntries(paths.data, dataEntryRule);
  await checkEntries(paths.log, logEntryRule);
  await checkManifest(paths.log);
}

/**
 * Requires a manifest if the log holds events. Checks for the manifest last, since a concurrent
 * first writer creates it before any event. An interrupted first startup leaves an empty tail and
 * directories but no manifest.
 */
async function checkManifest(log: string): Promise<void> {
  const tail = await statOf(join(log, TAIL_FILE));
  const holdsEvents = tail !== null && tail.size > 0 ||
    await holdsFiles(join(log, PENDING_FOLDER)) || await holdsFiles(join(log, SEGMENTS_FOLDER));
  if (!holdsEvents || await isFile(join(log, MANIFEST_FILE))) return;
  throw operationalError(
    `${log}: holds events but no ${MANIFEST_FILE}; restore the whole directory from a backup`,
  );
}

async function holdsFiles(folder: string): Promise<boolean> {
  return await isFolder(folder) && (await readdir(folder)).length > 0;
}

/**
 * Checks a directory without a configuration, which may contain at most an empty log.
 * @throws {CommandError} with exit status 1 if an entry is unexpected.
 */
export async function checkUncommitted(paths: DeploymentPaths): Promise<void> {
  if (!await isFolder(paths.data)) return;
  await checkEntries(paths.data, dataEntryRule);
  if (!await isFolder(paths.log)) return;
  if ((await readdir(paths.log)).length > 0) {
    throw operationalError(
      `${paths.log}: is not empty, but ${paths.config} is missing; restore that file`,
    );
  }
}

/** Returns false if `path` does not exist. @throws {CommandError} if it is not a directory. */
function isFolder(path: string): Promise<boolean> {
  return isKind(path, "directory");
}

/** Requires a directory at `logDir`. @throws {CommandError} if it is missing or a symlink. */
export async function requireLogFolder(logDir: string): Promise<void> {
  if (await isFolder(logDir)) return;
  throw operationalError(`${logDir}: no such directory; run init, or set [data] dir`);
}

/** Returns false if `path` does not exist. @throws {CommandError} if it is not a regular file. */
export function isFile(path: string): Promise<boolean> {
  return isKind(path, "file");
}

async function isKind(path: string, required: EntryKind): Promise<boolean> {
  const kind = await entryKind(path);
  if (kind !== null && kind !== required) {
    throw operationalError(`${path}: is a ${kind}, but must be a ${required}`);
  }
  return kind !== null;
}

function dataEntryRule(name: string): readonly EntryKind[] | null {
  if (name === "log") return ["directory"];
  if (name === "ground.sock") return ["socket"];
  return OLD_WAREHOUSE.test(name) ? ["file", "directory"] : null;
}

function logEntryRule(name: string): readonly EntryKind[] | null {
  if (LOG_FILES.includes(name)) return ["file"];
  return LOG_FOLDERS.includes(name) ? ["directory"] : null;
}

/** Checks a directory's entries. A running writer may remove some of them during the check. */
async function checkEntries(folder: string, rule: EntryRule): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const kinds = rule(name);
    if (kinds === null) {
      throw operationalError(`${path}: does not belong in ${folder}; move it elsewhere`);
    }
    const kind = await entryKind(path);
    if (kind !== null && !kinds.includes(kind)) {
      throw operationalError(`${path}: is a ${kind}, but must be a ${kinds.join(" or ")}`);
    }
  }
}

/** Returns the kind of the entry at `path`; null if absent. */
export async function entryKind(path: string): Promise<EntryKind | null> {
  const stat = await statOf(path);
  if (stat === null) return null;
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  return stat.isSocket() ? "socket" : "special file";
}

/** Follows no symlink. @returns null if there is no entry at `path`. */
async function statOf(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}
