/** Reads a configuration file: a small regular file in UTF-8. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { usageError } from "./exit.ts";
import { describeError, errorCode } from "./system_error.ts";

/** A configuration has seven keys, so a larger file is something else. */
export const CONFIG_FILE_BYTES_MAX: number = 64 * 1024;

/** Returns the text at `path`. @throws {CommandError} exit status 2: it cannot be read. */
export async function readConfigFile(path: string): Promise<string> {
  const file = await openConfigFile(path);
  try {
    const stat = await file.stat();
    if (stat.isDirectory()) throw usageError(`${path}: is a folder, not a configuration file`);
    if (!stat.isFile()) throw usageError(`${path}: is not a regular file`);
    if (stat.size > CONFIG_FILE_BYTES_MAX) {
      throw usageError(
        `${path}: is larger than ${CONFIG_FILE_BYTES_MAX} bytes, too large to be a configuration`,
      );
    }
    return decode(path, await file.readFile());
  } finally {
    await file.close();
  }
}

/** O_NONBLOCK keeps the open of a pipe from blocking. */
async function openConfigFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") {
      throw usageError(`${path}: cannot be opened: ${describeError(error)}`);
    }
    throw usageError(`${path}: no such file; name it with --config, or create one with init`);
  }
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${path}: is not valid UTF-8`);
  }
}
