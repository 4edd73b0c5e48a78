/**
 * `backup` copies a deployment, even while it is served. Copies are directories in DIR, named by
 * their time, and deployments of their own. They share segments as hard links. A copy is built
 * aside and published by a rename, so interrupting it changes no other.
 */
import { existsSync, realpathSync } from "node:fs";
import { link, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { ConnectionError, EventLogError, ProtocolError } from "../client/errors.ts";
import { systemCodeOf } from "../client/retry.ts";
import { type CopiedLog, copyLog, type Durability } from "../log/log_copy.ts";
import { LOCK_FILE, SEGMENTS_FOLDER } from "../log/storage/file_names.ts";
import { fileStorage } from "../log/storage/file_storage.ts";
import { isNoRoom } from "../log/storage/storage.ts";
import { lockFile } from "../runtime/file_lock.ts";
import type { Options } from "./arguments.ts";
import * as configs from "./config.ts";
import {
  absolutePath,
  CONFIG_FILE,
  entryKind,
  isKind,
  isWithin,
  requireLogFolder,
} from "./deployment.ts";
import { operationalError, usageError } from "./exit.ts";
import { createFolder, sync } from "./init.ts";
import { startProgress } from "./progress.ts";
import { readFrontier } from "./service_client.ts";
import type { Terminal } from "./terminal.ts";

/** A copy being built, and one being removed. Leftovers are removed by the next backup. */
const PARTIAL = ".partial";
const REMOVED = ".removed";
/** A link to the newest copy, and the next one. */
const LATEST = "latest";
const NEW_LATEST = ".latest";
const COPY_NAME = /^(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d)Z$/;
/** A service that takes longer to tell its frontier counts as not answering. */
const ANSWER_TIMEOUT_MS = 10_000;
/** Niceness of the process, which should not slow down the service. */
const NICENESS = 10;
/** Error codes of a connection to a socket on which nothing listens. */
const NOT_SERVED_CODES = ["ENOENT", "ECONNREFUSED"];

/**
 * Adds a copy to `dir`, and prints its path, frontier and chain head as a line of JSON.
 * @throws {CorruptLogError} if the log is damaged; `dir` is unchanged.
 */
export async function backup(
  config: configs.Config,
  dir: string,
  options: Options,
  terminal: Terminal,
): Promise<void> {
  configs.requireSupported(config, "backup");
  requireLogFolder(config.dataDir);
  const path = absolutePath(dir);
  let existing = path;
  while (!existsSync(existing)) existing = dirname(existing);
  if (isWithin(realpathSync(existing), realpathSync(config.dataDir))) {
    throw usageError(`${dir}: is in the data directory; choose another directory for backups`);
  }
  if (existsSync(join(path, CONFIG_FILE))) {
    throw usageError(`${dir}: is a deployment; choose another directory for backups`);
  }
  await createFolder(path);
  const root = realpathSync(path);
  const release = await lockFile(join(root, LOCK_FILE));
  if (release === null) throw operationalError(`${dir}: another backup to it is running`);
  try {
    await addCopy(config, root, options, terminal);
  } finally {
    release();
  }
}

async function addCopy(
  config: configs.Config,
  root: string,
  { keep }: Options,
  { print, report, stop, ...terminal }: Terminal,
): Promise<void> {
  const partial = join(root, PARTIAL);
  for (const name of [PARTIAL, REMOVED]) await removeTree(join(root, name));
  for (const name of [LATEST, NEW_LATEST]) isKind(join(root, name), "symlink");
  const names = (await readdir(root)).filter((name) => isCopy(root, name)).sort();
  const last = names.at(-1);
  const name = nextName(last);
  const { text, dataPath } = await configOfCopy(config, join(root, name));
  const progress = startProgress(terminal, "copied");
  lowerPriority();
  let copied: CopiedLog;
  try {
    const logDir = join(partial, dataPath, "log");
    await createFolder(logDir);
    copied = await copyLog(fileStorage(join(config.dataDir, "log")), fileStorage(logDir), {
      durability: () => askService(config),
      link: linkFrom(last === undefined ? null : join(root, last, dataPath, "log"), logDir),
      report: (line) => report(`backup: ${line}`),
      onProgress: progress.update,
      betweenChunks() {
        if (stop.aborted) throw operationalError("interrupted; no copy was made or changed");
      },
    });
    const configPath = join(partial, CONFIG_FILE);
    await writeFile(configPath, text, { flag: "wx", mode: 0o600 });
    for (const path of [configPath, partial]) await sync(path);
    await rename(partial, join(root, name));
  } catch (error) {
    progress.end();
    await removeTree(partial).catch(() => {});
    if (!isNoRoom(error)) throw error;
    throw operationalError(`${root}: no room for another copy; free some disk space`, error);
  }
  progress.end();
  await linkLatest(root, name);
  print(`${JSON.stringify({ path: join(root, name), ...copied })}\n`);
  const surplus = keep === undefined ? [] : [...names, name].slice(0, -Number(keep));
  for (const name of surplus) await removeCopy(join(root, name), report);
}

async function linkLatest(root: string, name: string): Promise<void> {
  const link = join(root, NEW_LATEST);
  await sync(root);
  await rm(link, { force: true });
  await symlink(name, link);
  await rename(link, join(root, LATEST));
  await sync(root);
}

/** Removes a copy, unless a service has used it: it may have events that are nowhere else. */
async function removeCopy(path: string, report: (line: string) => void): Promise<void> {
  // Its data directory may have another name than that of a copy made now.
  const files = await readdir(path, { recursive: true });
  if (files.some((file) => basename(file) === LOCK_FILE)) {
    return report(`backup: kept ${path}, since a service has used it`);
  }
  // A copy that is only partly removed must not look like one.
  const removed = join(dirname(path), REMOVED);
  await rename(path, removed);
  await removeTree(removed);
  report(`backup: removed ${path}`);
}

function lowerPriority(): void {
  try {
    setPriority(NICENESS);
  } catch {
    // Deno may lack the permission.
  }
}

async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}

/** Whether an entry is a copy, and not only named like one. */
function isCopy(root: string, name: string): boolean {
  return timeOf(name) > 0 && entryKind(join(root, name, CONFIG_FILE)) === "file";
}

/** Returns the time in the name of a copy, in Unix milliseconds; NaN for other names. */
function timeOf(name: string): number {
  return COPY_NAME.test(name) ? Date.parse(name.replace(COPY_NAME, "$1$2:$3:$4Z")) : NaN;
}

/** Returns the name of a copy that is made now. It sorts after `last`, whatever the clock says. */
function nextName(last: string | undefined): string {
  const lastMs = last === undefined ? 0 : timeOf(last);
  const time = new Date(Math.max(Date.now(), lastMs + 1000)).toISOString();
  return `${time.slice(0, 19).replaceAll(":", "-")}Z`;
}

/**
 * Returns the configuration of a copy in `dir`, and the path of its data directory, which is in
 * `dir`: a service that is started with the copy must not write to the original.
 */
async function configOfCopy({ path }: configs.Config, dir: string) {
  const text = await configs.readConfigFile(path);
  const inside = text.replace(/^(\s*(?:data\s*\.\s*)?dir\s*=).*/m, '$1 "./data"');
  for (const candidate of [text, inside]) {
    const { dataDir } = configs.parseConfig(join(dir, CONFIG_FILE), candidate);
    if (isWithin(dataDir, dir)) return { text: candidate, dataPath: relative(dir, dataDir) };
  }
  throw usageError(`${path}: [data] dir cannot be changed in the copy; put it on its own line`);
}

/** Returns how to link a file of the last copy, unless there is a symlink in its path. */
function linkFrom(from: string | null, into: string): (path: string) => Promise<boolean> {
  return async (path) => {
    if (from === null) return false;
    try {
      const folder = join(from, SEGMENTS_FOLDER);
      if (realpathSync(folder) !== folder) return false;
      await link(join(from, path), join(into, path));
      return true;
    } catch {
      // Whatever the reason is, the file can be copied.
      return false;
    }
  };
}

/** Asks the service how far its log is durable: it shows no event that is not. */
async function askService(config: configs.Config): Promise<Durability> {
  const options = { attemptsMax: 1, readTimeoutMs: ANSWER_TIMEOUT_MS };
  try {
    return { through: await readFrontier(config, options) };
  } catch (error) {
    const isAnswer = [ConnectionError, EventLogError, ProtocolError].some((type) =>
      error instanceof type
    );
    if (!isAnswer) throw error;
    return NOT_SERVED_CODES.includes(systemCodeOf(error) ?? "") ? "not served" : "unknown";
  }
}
