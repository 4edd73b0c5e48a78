/** A deployment of the service in a directory, served by a child process. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  describeExit,
  isRunning,
  signalChild,
  spawnCommand,
  type Spawned,
} from "../../tools/support/program.ts";
import {
  absenceOf,
  executableOf,
  runtimeArgs,
  type RuntimeName,
} from "../../tools/support/runtimes.ts";
import { RawClient } from "./raw_client.ts";
import { peakMemoryBytes } from "./process_stats.ts";
import { pageRequest } from "./requests.ts";

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

/** Figures for a command. */
export interface CommandRun {
  /** Duration of the process. */
  tookMs: number;
  /** Peak memory; null if unavailable, or if the process exited too early. */
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
    await succeeds("init", deployment.#spawn(["init", folder]));
    return deployment;
  }

  /**
   * Starts the server and waits for the first response.
   * @param rotateBytes size at which the server seals its tail; default: the program's own.
   * @param v8Flags more flags, such as `--trace-gc`.
   */
  async serve(rotateBytes?: number, v8Flags: string[] = []): Promise<Server> {
    const config = join(this.folder, "service.toml");
    const startMs = performance.now();
    const spawned = rotateBytes === undefined
      ? this.#spawn(["--config", config, "serve"], CLI, v8Flags)
      : this.#spawn([config, `${rotateBytes}`], SERVE_ROTATING, v8Flags);
    return await Server.ready(spawned, startMs, () => answers(this.socketPath));
  }

  /**
   * Runs one of the program's commands to completion.
   * @throws {Error} if the exit status is not 0.
   */
  async run(command: string[]): Promise<CommandRun> {
    const startMs = performance.now();
    const spawned = this.#spawn(["--config", join(this.folder, "service.toml"), ...command]);
    let peakBytes: number | null = null;
    const look = setInterval(() => {
      const bytes = peakMemoryBytes(spawned.child.pid!);
      if (bytes !== null) peakBytes = Math.max(peakBytes ?? 0, bytes);
    }, SAMPLE_MS);
    await succeeds(command[0]!, spawned).finally(() => clearInterval(look));
    return { tookMs: performance.now() - startMs, peakBytes };
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true });
  }

  #spawn(args: string[], script: string = CLI, v8Flags: string[] = []): Spawned {
    const executable = executableOf(this.#runtime);
    if (executable === null) throw new Error(absenceOf(this.#runtime));
    const flags = [...v8FlagsOf(this.#checkout), ...v8Flags];
    const net = `--allow-net=unix:${this.socketPath}`;
    const denoFlags = [`--v8-flags=${flags.join(",")}`, "--allow-read", "--allow-write", net];
    const runtimeFlags = runtimeArgs(this.#runtime, [...denoFlags, "--allow-sys"], flags);
    const command = [executable, ...runtimeFlags, join(this.#checkout, script), ...args];
    // Runs inside the checkout, so that both runtimes find its packages.
    const options = { cwd: this.#checkout, timeoutMs: null };
    return spawnCommand(command, { ...options, wrapper: ["env", "MALLOC_ARENA_MAX=1"] });
  }
}

/** @throws {Error} if the exit status of a command is not 0. */
async function succeeds(name: string, { exited }: Spawned): Promise<void> {
  const exit = await exited;
  if (exit.code !== 0) throw new Error(`${name}: ${describeExit(exit)}`);
}

/** Returns the V8 flags with which a checkout's `deno task start` runs. */
function v8FlagsOf(checkout: string): string[] {
  const { tasks } = JSON.parse(readFileSync(join(checkout, "deno.json"), "utf8"));
  const flags = /--v8-flags=(\S+)/.exec(tasks.start);
  if (flags === null) throw new Error(`${checkout}/deno.json: task start has no --v8-flags`);
  return flags[1]!.split(",");
}

/** Whether a service answers on a socket. */
async function answers(socketPath: string): Promise<boolean> {
  try {
    const client = await RawClient.connect(socketPath);
    const { status } = await client.exchange(pageRequest(null, 1)).finally(() => client.close());
    return [200, 401].includes(status);
  } catch {
    return false;
  }
}

/** A running server. */
export class Server {
  readonly #spawned: Spawned;
  /** Time from process start to the first response. */
  readonly startMs: number;

  private constructor(spawned: Spawned, startMs: number) {
    this.#spawned = spawned;
    this.startMs = startMs;
  }

  /**
   * Waits until a process that was started at `startMs` serves.
   * @param isReady tries a request.
   * @throws {Error} if the process exits or takes too long.
   */
  static async ready(
    spawned: Spawned,
    startMs: number,
    isReady: () => Promise<boolean>,
  ): Promise<Server> {
    spawned.exited.catch(() => {});
    while (!await isReady()) {
      if (!isRunning(spawned)) {
        throw new Error(`the server did not start: ${describeExit(await spawned.exited)}`);
      }
      if (performance.now() > startMs + START_TIMEOUT_MS) {
        signalChild(spawned.child, "SIGKILL");
        throw new Error(`no response from the server within ${START_TIMEOUT_MS} ms`);
      }
      await delay(POLL_MS);
    }
    return new Server(spawned, performance.now() - startMs);
  }

  get pid(): number {
    return this.#spawned.child.pid!;
  }

  /** The end of the server's standard output. */
  get printed(): string {
    return this.#spawned.output.stdout;
  }

  /** The end of the server's standard error. */
  get complaint(): string {
    return this.#spawned.output.stderr.slice(-COMPLAINT_CHARS_MAX);
  }

  /** Stops the server cleanly. @throws {Error} if it does not stop, or its status is not 0. */
  async stop(): Promise<void> {
    const { child, exited } = this.#spawned;
    signalChild(child, "SIGTERM");
    const timer = setTimeout(() => signalChild(child, "SIGKILL"), STOP_TIMEOUT_MS);
    const exit = await exited.finally(() => clearTimeout(timer));
    if (exit.code !== 0) throw new Error(`server did not stop cleanly: ${describeExit(exit)}`);
  }

  /** Kills the server. */
  async kill(): Promise<void> {
    signalChild(this.#spawned.child, "SIGKILL");
    await this.#spawned.exited;
  }
}
