/**
 * `init`: creates a deployment, or validates the one that an earlier run created. The configuration
 * is written aside, synced and renamed last, so a run that is cut off anywhere leaves no deployment
 * and nothing that a later run does not complete.
 */
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { DEFAULTS, SOCKET_PATH_BYTES_MAX } from "./config.ts";
import { readConfigFile } from "./config_file.ts";
import { CONFIG_TEMPLATE } from "./config_template.ts";
import {
  checkDeployment,
  checkUncommitted,
  CONFIG_FILE,
  type DeploymentPaths,
  deploymentPaths,
  isFile,
} from "./deployment.ts";
import { CommandError, operationalError } from "./exit.ts";
import { catchSignals } from "./signals.ts";
import { errorCode } from "./system_error.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** A configuration being written; of no meaning until it is renamed. */
const CANDIDATE_PREFIX = `.${CONFIG_FILE}.candidate-`;

export type InitOutcome = "initialized" | "already initialized";

/**
 * Creates or validates the deployment in `dir`; see `deployment.ts` for what it consists of. It
 * takes a moment, so the first SIGINT or SIGTERM lets it end.
 * @throws {CommandError} exit status 1 for what is there and does not belong; it stays as it is.
 */
export async function init(dir: string, report: (line: string) => void): Promise<InitOutcome> {
  const signals = catchSignals(report);
  try {
    return await initFolder(dir, report);
  } finally {
    signals.release();
  }
}

async function initFolder(dir: string, report: (line: string) => void): Promise<InitOutcome> {
  const paths = deploymentPaths(resolve(dir));
  const socketPath = join(paths.dir, DEFAULTS.server.socket);
  if (await isFile(paths.config)) return await validate(paths, socketPath);

  await checkUncommitted(paths, socketPath);
  for (const folder of [paths.dir, paths.data, paths.log]) await createFolder(folder);
  if (!await publishConfig(paths)) return await validate(paths, socketPath);
  warnOfLongPath(socketPath, report);
  return "initialized";
}

/** Syncs as well: the run that published may have been cut off before it did. */
async function validate(paths: DeploymentPaths, socketPath: string): Promise<InitOutcome> {
  if (!await isGenerated(paths.config)) {
    throw operationalError(
      `${paths.config}: differs from what init writes, and is left as it is; serve takes it so`,
    );
  }
  await checkDeployment(paths, socketPath);
  for (const path of [paths.config, paths.data, paths.dir]) await sync(path);
  return "already initialized";
}

async function isGenerated(path: string): Promise<boolean> {
  try {
    return await readConfigFile(path) === CONFIG_TEMPLATE;
  } catch (error) {
    // No text at all: what is a usage error where it is to be read is a refusal here.
    if (error instanceof CommandError) throw operationalError(error.message, error);
    throw error;
  }
}

/** Creates `path` and every parent that is missing, each durable before the next is made. */
async function createFolder(path: string): Promise<void> {
  if (await exists(path)) return;
  await createFolder(dirname(path));
  try {
    await mkdir(path, { mode: FOLDER_MODE });
  } catch (error) {
    // Another init was faster; the sync below is due all the same.
    if (errorCode(error) !== "EEXIST") throw error;
  }
  await sync(dirname(path));
}

/** Follows symlinks: the folder that is to hold a deployment may be reached through one. */
async function exists(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
  throw operationalError(`${path}: is not a folder; name another place for the deployment`);
}

/** @returns false when another init published first. Both publish the same bytes. */
async function publishConfig(paths: DeploymentPaths): Promise<boolean> {
  const candidate = join(paths.dir, CANDIDATE_PREFIX + randomBytes(8).toString("hex"));
  try {
    await writeSynced(candidate, CONFIG_TEMPLATE);
    if (await isFile(paths.config)) return false;
    await rename(candidate, paths.config);
  } catch (error) {
    // An init that published in the meantime cleans up what others left, this candidate too.
    if (errorCode(error) === "ENOENT" && await isFile(paths.config)) return false;
    throw error;
  } finally {
    await rm(candidate, { force: true });
  }
  await sync(paths.dir);
  await removeCandidates(paths.dir);
  return true;
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", FILE_MODE);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Removes what runs that were cut off left behind. */
async function removeCandidates(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    if (name.startsWith(CANDIDATE_PREFIX)) await rm(join(dir, name), { force: true });
  }
}

/** fsync(2) of a file, or of a folder: the names in it. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function warnOfLongPath(socketPath: string, report: (line: string) => void): void {
  const sizeBytes = Buffer.byteLength(socketPath);
  if (sizeBytes <= SOCKET_PATH_BYTES_MAX) return;
  report(
    `${CONFIG_FILE}: set [server] socket to a shorter path before serve: ${socketPath} has ` +
      `${sizeBytes} bytes, a Unix socket at most ${SOCKET_PATH_BYTES_MAX}`,
  );
}
