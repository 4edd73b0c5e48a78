/** A deployment of the service in a directory, served by a child process. */
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type CliOptions,
  describeExit,
  OWN_CHECKOUT,
  type Serving,
  signalChild,
  spawnCli,
  type Spawned,
  spawnServe,
  untilAnswered,
  untilReady,
} from "../../tools/support/program.ts";
import { absenceOf, executableOf, type RuntimeName } from "../../tools/support/runtimes.ts";
import { ask } from "./exchange.ts";
import { peakMemoryBytes } from "./process_stats.ts";
import { RawClient } from "./raw_client.ts";
import { keyedBatch } from "./requests.ts";

/** Timeouts for startup and shutdown. */
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 60_000;
/** Value of `rotateBytes` that keeps all events in the tail. */
export const ROTATE_NEVER_BYTES = Number.MAX_SAFE_INTEGER;
/** Interval of memory samples. */
const SAMPLE_MS = 20;
const COMPLAINT_CHARS_MAX = 4096;

export interface DeploymentOptions {
  serverRuntime: RuntimeName;
  /**
   * Directory to create it in, on the disk under test. Undefined for the system's temporary
   * directory, which must not be a tmpfs.
   */
  parent: string | undefined;
  /** Source tree of the program; default: this one. */
  checkout?: string | undefined;
}

export interface ServeOptions {
  /** Size at which the server seals its tail; default: the program's own. */
  rotateBytes?: number;
  /** More V8 flags, such as `--trace-gc`. */
  v8Flags?: string[];
}

/** Figures for a command. */
export interface CommandRun {
  /** Duration of the process. */
  tookMs: number;
  /** Peak memory; null if unavailable, or if the process exited too early. */
  peakBytes: number | null;
}

/** A running server. */
export interface Server extends Serving {
  pid: number;
  /** Time from process start to the first response. */
  startMs: number;
}

export class Deployment {
  readonly folder: string;
  readonly configPath: string;
  readonly socketPath: string;
  readonly #options: CliOptions;

  private constructor(folder: string, options: Omit<DeploymentOptions, "parent">) {
    const { serverRuntime: runtime, checkout = OWN_CHECKOUT } = options;
    if (executableOf(runtime) === null) throw new Error(absenceOf(runtime));
    this.folder = folder;
    this.configPath = join(folder, "service.toml");
    this.socketPath = join(folder, "data", "ground.sock");
    const net = `--allow-net=unix:${this.socketPath}`;
    this.#options = {
      runtime,
      checkout,
      permissions: ["--allow-read", "--allow-write", "--allow-sys", net],
      ...v8Options(v8FlagsOf(checkout)),
      // Inside the checkout, both runtimes find its packages.
      cwd: checkout,
      wrapper: ["env", "MALLOC_ARENA_MAX=1"],
      timeoutMs: null,
    };
  }

  /** Initializes a deployment in a new directory. */
  static async create(options: DeploymentOptions): Promise<Deployment> {
    const folder = await mkdtemp(join(options.parent ?? tmpdir(), "bench-"));
    return await Deployment.at(folder, options);
  }

  /** Returns the deployment in a directory, which is initialized if there is none. */
  static async at(
    folder: string,
    options: Omit<DeploymentOptions, "parent">,
  ): Promise<Deployment> {
    const deployment = new Deployment(folder, options);
    if (!existsSync(deployment.configPath)) {
      await succeeds("init", spawnCli(["init", folder], deployment.#options));
    }
    return deployment;
  }

  /** Starts the server and waits for the first response. */
  async serve({ rotateBytes, v8Flags = [] }: ServeOptions = {}): Promise<Server> {
    const startMs = performance.now();
    const flags = [...this.#options.nodeFlags!, ...v8Flags];
    const serving = spawnServe(this.folder, {
      ...this.#options,
      ...v8Options(flags),
      ...(rotateBytes !== undefined && { rotateBytes }),
    });
    await inTime(serving, START_TIMEOUT_MS, untilReady(serving));
    return { ...serving, pid: serving.child.pid!, startMs: performance.now() - startMs };
  }

  /**
   * Runs one of the program's commands to completion.
   * @throws {Error} if the exit status is not 0.
   */
  async run(command: string[]): Promise<CommandRun> {
    const startMs = performance.now();
    const spawned = spawnCli(["--config", this.configPath, ...command], this.#options);
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
}

/** Stops a server cleanly. @throws {Error} if it does not stop, or its status is not 0. */
export async function stopCleanly(server: Spawned): Promise<void> {
  signalChild(server.child, "SIGTERM");
  await inTime(server, STOP_TIMEOUT_MS, succeeds("the server", server));
}

/** Waits until a server answers a request. @throws {Error} if it exits or takes too long. */
export async function untilStarted(
  server: Spawned,
  request: () => Promise<unknown>,
): Promise<void> {
  await inTime(server, START_TIMEOUT_MS, untilAnswered(server.exited, request));
}

/** Waits for what a server does, and kills it if that takes too long. */
async function inTime({ child }: Spawned, timeoutMs: number, done: Promise<void>): Promise<void> {
  const timer = setTimeout(() => signalChild(child, "SIGKILL"), timeoutMs);
  await done.finally(() => clearTimeout(timer));
}

/** @throws {Error} if the exit status of a command is not 0. */
async function succeeds(name: string, { exited }: Spawned): Promise<void> {
  const exit = await exited;
  if (exit.code !== 0) throw new Error(`${name}: ${describeExit(exit)}`);
}

/** Returns the V8 flags with which a checkout's `deno task start` runs. */
function v8FlagsOf(checkout: string): string[] {
  const { tasks } = JSON.parse(readFileSync(join(checkout, "deno.json"), "utf8"));
  return /--v8-flags=(\S+)/.exec(tasks.start)![1]!.split(",");
}

function v8Options(flags: string[]): CliOptions {
  return { nodeFlags: flags, denoFlags: [`--v8-flags=${flags.join(",")}`] };
}

/** Runs `use` with a new deployment, then removes it. */
export async function withDeployment<T>(
  options: DeploymentOptions,
  use: (deployment: Deployment) => Promise<T>,
): Promise<T> {
  const deployment = await Deployment.create(options);
  return await use(deployment).finally(() => deployment.remove());
}

/** Serves the deployment during `use`, then stops the server cleanly, or kills it on failure. */
export async function withServer<T>(
  deployment: Deployment,
  use: (server: Server) => T | Promise<T>,
  options?: ServeOptions,
): Promise<T> {
  const server = await deployment.serve(options);
  let result: T;
  try {
    result = await use(server);
  } catch (error) {
    await server.stop("SIGKILL");
    const reason = error instanceof Error ? error.message : String(error);
    const complaint = server.output.stderr.slice(-COMPLAINT_CHARS_MAX).trim();
    throw new Error(`${reason}; server output: ${complaint}`, { cause: error });
  }
  await stopCleanly(server);
  return result;
}

/** Appends reproducible batches whose events have distinct keys, and keeps them in the tail. */
export async function appendKeyed(
  deployment: Deployment,
  batches: number,
  firstBatch = 0,
): Promise<void> {
  await withServer(deployment, async () => {
    const client = await RawClient.connect(deployment.socketPath);
    for (let number = firstBatch; number < firstBatch + batches; number++) {
      await ask(client, { request: keyedBatch(number), expected: '"status":"committed"' });
    }
    client.close();
  }, { rotateBytes: ROTATE_NEVER_BYTES });
}
