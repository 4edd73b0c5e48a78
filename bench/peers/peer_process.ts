/** Finds the peers' programs, and runs them until they exit or for as long as they are measured. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { stopCleanly, untilStarted } from "../support/deployment.ts";
import { findProgram, programFolders } from "../../tools/support/find_program.ts";
import { describeExit, spawnCommand } from "../../tools/support/program.ts";

/** Where Debian installs PostgreSQL, one directory per version. */
const POSTGRES_VERSIONS = "/usr/lib/postgresql";

/** PostgreSQL does not run as root. */
export const AS_POSTGRES = process.getuid?.() === 0
  ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
  : [];

/** Returns the path of a program; null if missing. PEERS_PATH overrides the search path. */
export function findPeer(name: string): string | null {
  const folders = process.env["PEERS_PATH"]?.split(":");
  // Debian's wrapper of psql in PATH is slow to start.
  return findProgram(name, folders ?? [...postgresFolders(), ...programFolders()]);
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
 * @param tryRequest rejects while the server is not ready.
 */
export async function withPeer<T>(
  command: string[],
  tryRequest: () => Promise<unknown>,
  use: (pid: number) => Promise<T>,
): Promise<T> {
  const server = spawnCommand(command, { timeoutMs: null });
  await untilStarted(server, tryRequest);
  return await use(server.child.pid!).finally(() => stopCleanly(server));
}
