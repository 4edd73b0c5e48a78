/** Finds the peers' programs, and runs them until they exit or for as long as they are measured. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { findProgram, programFolders } from "../../tools/support/find_program.ts";
import { describeExit, isRunning, signalChild, spawnCommand } from "../../tools/support/program.ts";

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 5;
/** Where Debian installs PostgreSQL, one directory per version. */
const POSTGRES_VERSIONS = "/usr/lib/postgresql";

/** PostgreSQL does not run as root. */
export const AS_POSTGRES = process.getuid?.() === 0
  ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
  : [];

/** Returns the path of a program; null if missing. PEERS_PATH overrides the search path. */
export function findPeer(name: string): string | null {
  const folders = process.env["PEERS_PATH"]?.split(":") ??
    [...programFolders(), ...postgresFolders()];
  return findProgram(name, folders);
}

/** @throws {Error} if the program is missing. */
export function requirePeer(name: string): string {
  const path = findPeer(name);
  if (path === null) throw new Error(`${name} is not installed`);
  return path;
}

/** Returns the directories of the installed versions, newest first. */
function postgresFolders(): string[] {
  try {
    const versions = readdirSync(POSTGRES_VERSIONS).sort((a, b) => Number(b) - Number(a));
    return versions.map((version) => join(POSTGRES_VERSIONS, version, "bin"));
  } catch {
    return [];
  }
}

/** Runs a command and returns its standard output. @throws {Error} if its status is not 0. */
export async function runPeer(command: string[]): Promise<string> {
  const exit = await spawnCommand(command, { timeoutMs: null }).exited;
  if (exit.code !== 0) throw new Error(`${command[0]}: ${describeExit(exit)}`);
  return exit.stdout;
}

/**
 * Runs a server during `use`, and stops it cleanly.
 * @param isReady tries a request; rejects while the server is not ready.
 * @throws {Error} if the server does not start, or its exit status is not 0.
 */
export async function withPeer<T>(
  command: string[],
  isReady: () => Promise<unknown>,
  stopSignal: "SIGTERM" | "SIGINT",
  use: (pid: number) => Promise<T>,
): Promise<T> {
  const server = spawnCommand(command, { timeoutMs: null });
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  let result: T;
  try {
    while (!await isReady().then(() => true, () => false)) {
      if (!isRunning(server)) throw new Error(describeExit(await server.exited));
      if (performance.now() > deadlineMs) throw new Error(`no response in ${START_TIMEOUT_MS} ms`);
      await delay(POLL_MS);
    }
    result = await use(server.child.pid!);
  } finally {
    signalChild(server.child, stopSignal);
    await server.exited;
  }
  const exit = await server.exited;
  if (exit.code !== 0) throw new Error(`${command[0]}: ${describeExit(exit)}`);
  return result;
}
