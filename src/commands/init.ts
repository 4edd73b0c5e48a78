/**
 * `init` creates or validates a deployment. The configuration is synced and renamed into place
 * last, so that an interrupted run leaves no deployment, and the next run completes it.
 */
import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { loadConfig, readConfigFile, requireSupported } from "./config.ts";
import { CONFIG_TEMPLATE } from "./config_template.ts";
import {
  absolutePath,
  checkDeployment,
  checkUncommitted,
  CONFIG_FILE,
  type DeploymentPaths,
  deploymentPaths,
  isKind,
  statOf,
} from "./deployment.ts";
import { operationalError } from "./exit.ts";
import { foreignFolder } from "./ownership.ts";
import { errorCode } from "../log/storage/storage.ts";
import { describeError } from "../log/storage/system_error.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Name prefix of temporary files that hold the configuration. */
const CANDIDATE_PREFIX = `.${CONFIG_FILE}.candidate-`;

export type InitOutcome = "initialized" | "already initialized";

/**
 * Creates or validates the deployment in `dir`; `deployment.ts` lists its files.
 * @throws {CommandError} with exit status 1 if an entry is unexpected; nothing existing is changed.
 */
export async function init(dir: string): Promise<InitOutcome> {
  const paths = deploymentPaths(absolutePath(dir));
  const outer = deploymentPaths(dirname(paths.dir));
  if (outer.data === paths.dir && isKind(outer.config, "file")) {
    throw operationalError(`${paths.dir}: is the data directory of the deployment ${outer.dir}`);
  }
  await createFolder(paths.dir);
  if (isKind(paths.config, "file")) return await validate(paths);

  checkUncommitted(paths);
  checkOwners(paths);
  for (const folder of [paths.data, paths.log]) await createFolder(folder);
  if (!await publishConfig(paths)) return await validate(paths);
  return "initialized";
}

function checkOwners({ dir, data, log }: DeploymentPaths): void {
  for (const folder of [dir, data, log]) {
    const fault = foreignFolder(folder);
    if (fault !== null) throw operationalError(fault);
  }
}

/** Validates the deployment and syncs it, since the run that created it may not have done so. */
async function validate(paths: DeploymentPaths): Promise<InitOutcome> {
  const { config } = paths;
  try {
    if (await readConfigFile(config) !== CONFIG_TEMPLATE) {
      requireSupported(await loadConfig(config), "serve");
      const advice = "exists and differs from the file that init writes; to keep it, run serve";
      throw operationalError(`${config}: ${advice}`);
    }
  } catch (error) {
    // All refusals have the same exit status.
    throw operationalError(describeError(error), error);
  }
  checkDeployment(paths);
  checkOwners(paths);
  for (const path of [paths.config, paths.data, paths.dir]) await sync(path);
  return "already initialized";
}

/** Creates `path` and missing parents. Each directory is durable before the next is created. */
export async function createFolder(path: string): Promise<void> {
  // Follows symlinks, since a deployment's directory may be one.
  const isFolder = () => statOf(path, statSync)?.isDirectory() ?? false;
  if (isFolder()) return;
  await createFolder(dirname(path));
  // A concurrent init may have created the directory, without having synced its parent yet.
  // With `recursive`, Node tries forever in a file system such as /proc.
  await mkdir(path, { mode: FOLDER_MODE }).catch((error) => {
    if (isFolder()) return;
    // Another path would not help.
    if (errorCode(error) === "ENOSPC") throw error;
    const isTaken = errorCode(error) === "EEXIST";
    const reason = isTaken ? "not a directory" : `cannot be created: ${describeError(error)}`;
    throw operationalError(`${path}: ${reason}; choose another path`, error);
  });
  await sync(dirname(path));
}

/** Returns false if a concurrent init published first; its file has the same content. */
async function publishConfig(paths: DeploymentPaths): Promise<boolean> {
  const candidate = join(paths.dir, CANDIDATE_PREFIX + randomBytes(8).toString("hex"));
  try {
    await writeFile(candidate, CONFIG_TEMPLATE, { flag: "wx", mode: FILE_MODE });
    await sync(candidate);
    if (isKind(paths.config, "file")) return false;
    await rename(candidate, paths.config);
  } catch (error) {
    // A concurrent init that has published its own removes all candidates, including this one.
    if (errorCode(error) === "ENOENT" && isKind(paths.config, "file")) return false;
    throw error;
  } finally {
    await rm(candidate, { force: true });
  }
  await sync(paths.dir);
  // Interrupted runs may have left temporary files.
  for (const name of await readdir(paths.dir)) {
    if (name.startsWith(CANDIDATE_PREFIX)) await rm(join(paths.dir, name), { force: true });
  }
  return true;
}

/** Syncs a file or a directory's entries. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
