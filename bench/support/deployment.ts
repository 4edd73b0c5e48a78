/** A deployment of the service in a temporary directory, served by a child process. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { RawClient } from "./raw_client.ts";
import { pageRequest } from "./requests.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";

/** The checkout that contains this file. */
const OWN_CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));
const CLI = "cli.ts";
const SERVE_ROTATING = "tools/serve_rotating.ts";

/** Timeout for startup and shutdown. */
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
/** Value of `rotateBytes` for `Deployment.serve()` that keeps all events in the tail. */
export const ROTATE_NEVER_BYTES = Number.MAX_SAFE_INTEGER;
/** Polling interval while the server starts, which is the resolution of startup times. */
const POLL_MS = 2;
/** Interval of memory samples. */
const SAMPLE_MS = 20;
const COMPLAINT_CHARS_MAX = 4096;

/** Kinds of server: the program under a runtime, or as a compiled executable. */
export const RUNTIMES = ["deno", "node", "executable"] as const;
export type RuntimeName = typeof RUNTIMES[number];

/** Environment variables with the runtimes' paths. Only `executable` requires its variable. */
const VARIABLES: Record<RuntimeName, string> = {
  deno: "SERVICE_DENO",
  node: "SERVICE_NODE",
  executable: "SERVICE_EXECUTABLE",
};

/** Returns the current runtime. */
export function ownRuntime(): RuntimeName {
  return THIS_RUNTIME;
}

/**
 * Returns the path in the runtime's variable. By default, returns the path of the current
 * executable, or the runtime's name for a lookup in PATH.
 * @throws {Error} if the compiled executable has no path.
 */
export function executableOf(runtime: RuntimeName): string {
  const named = process.env[VARIABLES[runtime]];
  if (named !== undefined) return named;
  if (runtime === "executable") throw new Error("SERVICE_EXECUTABLE must name the executable");
  return runtime === ownRuntime() ? process.execPath : runtime;
}

/** Figures for a command. */
export interface CommandRun {
  /** Duration of the process. */
  tookMs: number;
  /** Null if unavailable, or if the process exited too early. */
  peakBytes: number | null;
}

export class Deployment {
  readonly folder: string;
  readonly socketPath: string;
  readonly #runtime: RuntimeName;
  readonly #checkout: string;

  private constructor(folder: string, runtime: RuntimeName, checkout: string) {
    this.folder = folder;
    this.socketPath = join(folder, "data", "ground.sock");
    this.#runtime = runtime;
    this.#checkout = checkout;
  }

  /**
   * Initializes a deployment.
   * @param parent directory to create it in, on the disk under test. Undefined for the system's
   *   temporary directory, which must not be a tmpfs.
   * @param checkout source tree of the program; default: this one.
   */
  static async create(
    runtime: RuntimeName,
    parent: string | undefined,
    checkout: string = OWN_CHECKOUT,
  ): Promise<Deployment> {
    const folder = await mkdtemp(join(parent ?? tmpdir(), "bench-"));
    return await Deployment.at(folder, runtime, checkout);
  }

  /** Returns the deployment in a directory, which is initialized if there is none. */
  static async at(
    folder: string,
    runtime: RuntimeName,
    checkout: string = OWN_CHECKOUT,
  ): Promise<Deployment> {
    const deployment = new Deployment(folder, runtime, checkout);
    const init = new ServerProcess(deployment.#spawn(["init", folder]));
    const code = await init.exited;
    if (code !== 0) throw new Error(`init exited with ${code}: ${init.complaint}`);
    return deployment;
  }

  /**
   * Starts the server and waits for the first response.
   * @param rotateBytes size at which the server seals its tail; default: the program's own. Since a
   *   compiled executable does not support this, the current runtime replaces it.
   */
  async serve(rotateBytes?: number): Promise<Server> {
    const startMs = performance.now();
    const config = join(this.folder, "service.toml");
    const child = rotateBytes === undefined
      ? this.#spawn(["--config", config, "serve"])
      : this.#spawn([config, `${rotateBytes}`], SERVE_ROTATING);
    const serverProcess = new ServerProcess(child);
    await serverProcess.waitUntilReady(this.socketPath, startMs + START_TIMEOUT_MS);
    return new Server(serverProcess, performance.now() - startMs);
  }

  /**
   * Runs one of the program's commands to completion.
   * @param memoryOf peak memory of a process so far.
   * @throws {Error} if the exit status is not 0.
   */
  async run(
    command: string[],
    memoryOf: (pid: number) => number | null,
  ): Promise<CommandRun> {
    const startMs = performance.now();
    const config = join(this.folder, "service.toml");
    const running = new ServerProcess(this.#spawn(["--config", config, ...command]));
    let peakBytes: number | null = null;
    const look = setInterval(() => peakBytes = memoryOf(running.pid) ?? peakBytes, SAMPLE_MS);
    const code = await running.exited;
    clearInterval(look);
    if (code !== 0) throw new Error(`${command[0]} exited with ${code}: ${running.complaint}`);
    return { tookMs: performance.now() - startMs, peakBytes };
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true });
  }

  #spawn(args: string[], script: string = CLI): ChildProcess {
    const isProgram = script === CLI || this.#runtime !== "executable";
    const runtime = isProgram ? this.#runtime : ownRuntime();
    return spawn(executableOf(runtime), [...this.#programArgs(runtime, script), ...args], {
      // Run inside the checkout, so that both runtimes find its packages.
      cwd: this.#checkout,
      env: runtime === "deno" ? { ...process.env, MALLOC_ARENA_MAX: "1" } : process.env,
      stdio: ["ignore", "ignore", "pipe"],
    });
  }

  /** Returns the command line of the program. */
  #programArgs(runtime: RuntimeName, script: string): string[] {
    const permissions = [
      "--allow-read",
      "--allow-write",
      "--allow-sys",
      `--allow-net=unix:${this.socketPath}`,
    ];
    switch (runtime) {
      case "deno":
        return [
          "run",
          "--no-prompt",
          v8FlagsOf(this.#checkout),
          ...permissions,
          join(this.#checkout, script),
        ];
      case "node":
        return [join(this.#checkout, script)];
      case "executable":
        return [];
    }
  }
}

/** Returns the V8 flags with which a checkout's `deno task start` runs. */
function v8FlagsOf(checkout: string): string {
  const { tasks } = JSON.parse(readFileSync(join(checkout, "deno.json"), "utf8"));
  const flags = /--v8-flags=\S+/.exec(tasks.start);
  if (flags === null) throw new Error(`${checkout}/deno.json: task start has no --v8-flags`);
  return flags[0];
}

/** A running server. */
export class Server {
  readonly #process: ServerProcess;
  /** Time from process start to the first response. */
  readonly startMs: number;

  constructor(serverProcess: ServerProcess, startMs: number) {
    this.#process = serverProcess;
    this.startMs = startMs;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** The end of the server's standard error. */
  get complaint(): string {
    return this.#process.complaint;
  }

  /** Stops the server cleanly. @throws {Error} if it does not stop, or its status is not 0. */
  async stop(): Promise<void> {
    this.#process.signal("SIGTERM");
    const timeout = new AbortController();
    const late = delay(STOP_TIMEOUT_MS, "late" as const, { signal: timeout.signal, ref: false });
    late.catch(() => {});
    const code = await Promise.race([this.#process.exited, late]);
    timeout.abort();
    if (code === "late") this.#process.signal("SIGKILL");
    if (code !== 0) throw new Error(`server did not stop cleanly (${code}): ${this.complaint}`);
  }

  /** Kills the server. */
  async kill(): Promise<void> {
    this.#process.signal("SIGKILL");
    await this.#process.exited;
  }
}

/** A server process, which may still be starting. */
export class ServerProcess {
  readonly #child: ChildProcess;
  /** Exit status; null if a signal ended the process. */
  readonly exited: Promise<number | null>;
  #hasExited = false;
  /** The end of the server's standard error. */
  complaint = "";

  constructor(child: ChildProcess) {
    this.#child = child;
    this.exited = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    const markExited = () => {
      this.#hasExited = true;
    };
    this.exited.then(markExited, markExited);
    child.stderr?.on("data", (text) => {
      this.complaint = (this.complaint + text).slice(-COMPLAINT_CHARS_MAX);
    });
  }

  /** Starts an executable and keeps its standard error. */
  static spawn(executable: string, args: string[]): ServerProcess {
    return new ServerProcess(spawn(executable, args, { stdio: ["ignore", "ignore", "pipe"] }));
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Does nothing if the process has exited. */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (this.#hasExited) return;
    // Don't use `child.kill()`: on Deno, it makes the signal replace the exit status.
    process.kill(this.pid, signal);
  }

  /** @param isReady tries a request; by default, to the service on `socketPath`. */
  async waitUntilReady(
    socketPath: string,
    deadlineMs: number,
    isReady: () => Promise<boolean> = () => answers(socketPath),
  ): Promise<void> {
    while (!await isReady()) {
      if (this.#hasExited) {
        throw new Error(`server exited with ${await this.exited}: ${this.complaint}`);
      }
      if (performance.now() > deadlineMs) {
        this.signal("SIGKILL");
        throw new Error(`server did not respond within ${START_TIMEOUT_MS} ms: ${this.complaint}`);
      }
      await delay(POLL_MS);
    }
  }
}

/** Whether the server responds; false while nothing is listening. */
async function answers(socketPath: string): Promise<boolean> {
  let client: RawClient;
  try {
    client = await RawClient.connect(socketPath);
  } catch {
    // There is no socket yet, or a killed server left a stale one.
    return false;
  }
  try {
    // 401 if the deployment has a token.
    return [200, 401].includes((await client.exchange(pageRequest(null, 1))).status);
  } finally {
    client.close();
  }
}
