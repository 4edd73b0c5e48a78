/**
 * Finds the peers' programs, runs them as an unprivileged user (PostgreSQL refuses to run as root),
 * and stops them with all their children, even after failures.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { findProgram, programFolders } from "../../tools/support/find_program.ts";

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 60_000;
/** Polling interval while a server starts. */
const POLL_MS = 5;
const OUTPUT_CHARS_MAX = 1024 * 1024;
const COMPLAINT_CHARS_MAX = 4096;
/** Where Debian installs PostgreSQL, one directory per version. */
const POSTGRES_VERSIONS = "/usr/lib/postgresql";
/** Unprivileged users to run programs as, in order of preference. */
const UNPRIVILEGED = ["postgres", "nobody"];

/** The user to run programs as; undefined for the current one. */
export interface UserIds {
  uid: number;
  gid: number;
}

/** Returns the path of a program; null if missing. PEERS_PATH overrides the search path. */
export function findPeer(name: string): string | null {
  const folders = process.env["PEERS_PATH"]?.split(":") ??
    [...programFolders(), ...postgresFolders()];
  return findProgram(name, folders);
}

/** Returns the directories of the installed versions, newest first. */
function postgresFolders(): string[] {
  let versions: string[];
  try {
    versions = readdirSync(POSTGRES_VERSIONS);
  } catch {
    return [];
  }
  versions.sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(POSTGRES_VERSIONS, version, "bin"));
}

/**
 * The user to run peers as: the current one, unless it is root.
 * @throws {Error} if there is no unprivileged user.
 */
export function unprivilegedUser(): UserIds | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8").split("\n").map((line) => line.split(":"));
  for (const name of UNPRIVILEGED) {
    const user = users.find((fields) => fields[0] === name);
    if (user !== undefined) return { uid: Number(user[2]), gid: Number(user[3]) };
  }
  throw new Error(
    `PostgreSQL does not run as root, and there is no user ${UNPRIVILEGED.join(", ")}`,
  );
}

/**
 * Runs a program to completion.
 * @returns its standard output.
 * @throws {Error} if the exit status is not 0. The message includes the end of the output.
 */
export async function runProgram(
  path: string,
  args: string[],
  user?: UserIds,
): Promise<string> {
  const child = start(path, args, user);
  const output = collect(child);
  const code = await exitOf(child);
  if (code !== 0) throw new Error(`${path} exited with ${code}: ${output.complaint()}`);
  return output.stdout();
}

/** A peer's running server. */
export class PeerServer {
  readonly #path: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  readonly #output: Output;
  #hasExited = false;

  private constructor(path: string, child: ChildProcess) {
    this.#path = path;
    this.#child = child;
    this.#output = collect(child);
    this.#exited = exitOf(child);
    const markExited = () => {
      this.#hasExited = true;
    };
    this.#exited.then(markExited, markExited);
  }

  /**
   * Starts a server.
   * @param answers tries a request; throws while the server is not ready.
   * @throws {Error} if the server exits or does not respond in time.
   */
  static async start(
    path: string,
    args: string[],
    user: UserIds | undefined,
    answers: () => Promise<void>,
  ): Promise<PeerServer> {
    const server = new PeerServer(path, start(path, args, user));
    await server.#waitUntilReady(answers);
    return server;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** @param signal requests a fast and clean shutdown of this server. */
  async stop(signal: "SIGTERM" | "SIGINT"): Promise<void> {
    this.#signal(signal);
    const timeout = new AbortController();
    const late = delay(STOP_TIMEOUT_MS, "late" as const, { signal: timeout.signal });
    late.catch(() => {});
    const code = await Promise.race([this.#exited, late]);
    timeout.abort();
    if (code === "late") this.#signal("SIGKILL");
    if (code !== 0) throw new Error(`${this.#path} exited with ${code}: ${this.#complaint()}`);
  }

  #signal(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): void {
    if (!this.#hasExited) process.kill(this.pid, signal);
  }

  #complaint(): string {
    return this.#output.complaint();
  }

  async #waitUntilReady(answers: () => Promise<void>): Promise<void> {
    const deadlineMs = performance.now() + START_TIMEOUT_MS;
    while (true) {
      try {
        return await answers();
      } catch (error) {
        if (this.#hasExited) {
          throw new Error(`${this.#path} did not start: ${this.#complaint()}`, { cause: error });
        }
        if (performance.now() > deadlineMs) {
          this.#signal("SIGKILL");
          throw new Error(`${this.#path} did not respond within ${START_TIMEOUT_MS} ms`, {
            cause: error,
          });
        }
      }
      await delay(POLL_MS);
    }
  }
}

interface Output {
  stdout(): string;
  /** The end of the server's output, including standard error. */
  complaint(): string;
}

function start(path: string, args: string[], user: UserIds | undefined): ChildProcess {
  return spawn(path, args, { stdio: ["ignore", "pipe", "pipe"], ...user });
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
}

function collect(child: ChildProcess): Output {
  let stdout = "";
  let both = "";
  child.stdout!.on("data", (text) => {
    stdout = (stdout + text).slice(-OUTPUT_CHARS_MAX);
    both = (both + text).slice(-COMPLAINT_CHARS_MAX);
  });
  child.stderr!.on("data", (text) => both = (both + text).slice(-COMPLAINT_CHARS_MAX));
  return { stdout: () => stdout, complaint: () => both.trim() };
}
