/**
 * The files in a deployment, created and checked by `init`:
 *
 *   <dir>/service.toml   published last: a deployment exists once this file does
 *   <dir>/data/          owned by the service; must contain nothing else
 *   <dir>/data/log/      the log; empty until the first writer starts
 *
 * Checks never overwrite or delete anything and follow no symlinks.
 */
import { lstatSync, readdirSync } from "node:fs";
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
export function checkDeployment(paths: DeploymentPaths): void {
  for (const folder of [paths.data, paths.log]) {
    if (!isFolder(folder)) {
      throw operationalError(
        `${folder}: is missing, but ${paths.config} exists; restore it from a backup`,
      );
    }
  }
  checkEntries(paths.data, dataEntryRule);
  checkEntries(paths.log, logEntryRule);
  checkManifest(paths.log);
}

/**
 * Requires a manifest if the log holds events. Checks for the manifest last, since a concurrent
 * first writer creates it before any event. An interrupted first startup leaves an empty tail and
 * directories but no manifest.
 */
function checkManifest(log: string): void {
  const tail = lstatSync(join(log, TAIL_FILE), { throwIfNoEntry: false });
  const holdsEvents = tail !== undefined && tail.size > 0 ||
    holdsFiles(join(log, PENDING_FOLDER)) || holdsFiles(join(log, SEGMENTS_FOLDER));
  if (!holdsEvents || isFile(join(log, MANIFEST_FILE))) return;
  throw operationalError(
    `${log}: holds events but no ${MANIFEST_FILE}; restore the whole directory from a backup`,
  );
}

function holdsFiles(folder: string): boolean {
  return isFolder(folder) && readdirSync(folder).length > 0;
}

/**
 * Checks a directory without a configuration, which may contain at most an empty log.
 * @throws {CommandError} with exit status 1 if an entry is unexpected.
 */
export function checkUncommitted(paths: DeploymentPaths): void {
  if (!isFolder(paths.data)) return;
  checkEntries(paths.data, dataEntryRule);
  if (!isFolder(paths.log)) return;
  if (readdirSync(paths.log).length > 0) {
    throw operationalError(
      `${paths.log}: is not empty, but ${paths.config} is missing; restore that file`,
    );
  }
}

/** Returns false if `path` does not exist. @throws {CommandError} if it is not a directory. */
function isFolder(path: string): boolean {
  return isKind(path, "directory");
}

/** Requires a directory at `logDir`. @throws {CommandError} if it is missing or a symlink. */
export function requireLogFolder(logDir: string): void {
  if (isFolder(logDir)) return;
  throw operationalError(`${logDir}: no such directory; run init, or set [data] dir`);
}

/** Returns false if `path` does not exist. @throws {CommandError} if it is not a regular file. */
export function isFile(path: string): boolean {
  return isKind(path, "file");
}

function isKind(path: string, ...required: EntryKind[]): boolean {
  const kind = entryKind(path);
  if (kind !== null && !required.includes(kind)) {
    throw operationalError(`${path}: is a ${kind}, but must be a ${required.join(" or ")}`);
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
function checkEntries(folder: string, rule: EntryRule): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const kinds = rule(name);
    if (kinds === null) {
      throw operationalError(`${path}: does not belong in ${folder}; move it elsewhere`);
    }
    isKind(path, ...kinds);
  }
}

/** Returns the kind of the entry at `path`, which may be a symlink; null if absent. */
export function entryKind(path: string): EntryKind | null {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  return stat.isSocket() ? "socket" : "special file";
}
