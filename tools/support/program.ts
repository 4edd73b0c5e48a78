/** Runs the program as a child process: under the test's runtime, or as the compiled executable. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { init } from "../../src/commands/init.ts";
import { type Fetch, unixFetch } from "../../src/client/unix_fetch.ts";
import {
  executableOf,
  runtimeArgs,
  type RuntimeName,
  TESTED_EXECUTABLE,
  THIS_RUNTIME,
} from "./runtimes.ts";

/** The checkout that contains this file. */
export const OWN_CHECKOUT: string = fileURLToPath(new URL("../..", import.meta.url));
const SERVE_ROTATING = "tools/serve_rotating.ts";
/** A child that takes longer is killed, and its exit status fails the test. */
const CHILD_TIMEOUT_MS = 120_000;
/** Only the end of each output stream is kept, up to this size. */
const OUTPUT_CHARS_MAX = 16 * 1024 * 1024;
/** Polling interval, which is the resolution of startup times. */
const POLL_MS = 2;
const OUTPUTS = ["stdout", "stderr"] as const;

export interface CliExit {
  /** Null if a signal ended it. */
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  cwd?: string;
  runtime?: RuntimeName;
  /** Source tree of the program; default: this one. */
  checkout?: string;
  /** Permissions under Deno. */
  permissions?: string[];
  /** Other command-line options for Deno. */
  denoFlags?: string[];
  nodeFlags?: string[];
  /** Path of a program to run instead of `cli.ts` under a runtime. */
  executable?: string;
  /** A wrapper that runs the child, such as a tracer, with the wrapper's own arguments. */
  wrapper?: string[];
  /** Time after which a running child is killed. Null disables it. Default: CHILD_TIMEOUT_MS. */
  timeoutMs?: number | null;
}

/** Returns the options with which either runtime first runs a module, given as its source. */
export function preloading(script: string): CliOptions {
  const url = `data:text/javascript,${encodeURIComponent(script)}`;
  return { nodeFlags: ["--import", url], denoFlags: [`--preload=${url}`] };
}

/** Runs the program to completion. */
export function runCli(args: string[], options: CliOptions = {}): Promise<CliExit> {
  return spawnCli(args, options).exited;
}

export interface Spawned {
  child: ChildProcess;
  /** Grows as the child writes. */
  output: { stdout: string; stderr: string };
  exited: Promise<CliExit>;
}

/** Returns the command line of the program. */
export function cliCommand(args: string[]): string[] {
  return [...programOf({}), ...args];
}

/** Starts the program. */
export function spawnCli(args: string[], options: CliOptions = {}): Spawned {
  return spawnCommand([...programOf(options), ...args], options);
}

/** Starts a script in this source tree. */
export function spawnScript(script: string, args: string[], options: CliOptions = {}): Spawned {
  return spawnCommand([...runtimeOf(options), script, ...args], options);
}

/** Returns the program under the requested runtime, or the compiled executable if one is set. */
function programOf(options: CliOptions): string[] {
  const { runtime = THIS_RUNTIME, checkout } = options;
  const isTested = runtime === THIS_RUNTIME && checkout === undefined;
  const executable = options.executable ?? (isTested ? TESTED_EXECUTABLE : undefined);
  if (executable !== undefined) return [executable];
  return [...runtimeOf(options), join(checkout ?? OWN_CHECKOUT, "cli.ts")];
}

function runtimeOf(
  { runtime = THIS_RUNTIME, permissions, denoFlags = [], nodeFlags = [] }: CliOptions,
): string[] {
  const granted = permissions ?? ["--allow-read", "--allow-write", "--allow-sys", "--allow-net"];
  return [executableOf(runtime)!, ...runtimeArgs(runtime, [...granted, ...denoFlags], nodeFlags)];
}

/** Starts a command. */
export function spawnCommand(command: string[], options: CliOptions): Spawned {
  const { cwd = process.cwd(), timeoutMs = CHILD_TIMEOUT_MS } = options;
  const [program, ...programArgs] = [...options.wrapper ?? [], ...command];
  const child = spawn(program!, programArgs, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of OUTPUTS) {
    child[name]!.setEncoding("utf8").on("data", (text: string) => {
      output[name] = (output[name] + text).slice(-OUTPUT_CHARS_MAX);
    });
  }
  const timer = timeoutMs === null
    ? undefined
    : setTimeout(() => signalChild(child, "SIGKILL"), timeoutMs);
  const exited = new Promise<CliExit>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, ...output }));
  }).finally(() => clearTimeout(timer));
  return { child, output, exited };
}

/** Describes on one line how a child ended. */
export function describeExit({ code, signal, stderr }: CliExit): string {
  return `${signal ?? `exit ${code}`}: ${stderr.trim() || "no standard error"}`;
}

export function isRunning({ child }: Pick<Spawned, "child">): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** Waits until the child has written `text` to standard error. */
export async function untilReported(spawned: Spawned, text: string): Promise<void> {
  await untilPrinted(spawned, ({ stderr }) => stderr.includes(text));
}

/** Waits until `isThere` accepts the child's output. @throws {Error} if the child exits first. */
export async function untilPrinted(
  { output, exited }: Pick<Spawned, "output" | "exited">,
  isThere: (output: Spawned["output"]) => boolean,
): Promise<void> {
  let isOver = false;
  const over = exited.finally(() => isOver = true);
  over.catch(() => {});
  while (!isThere(output)) {
    if (isOver) throw new Error(`the process exited early: ${output.stdout}${output.stderr}`);
    await Promise.race([over, delay(POLL_MS)]);
  }
}

/**
 * Sends a signal to a child, unless it has exited. It avoids `child.kill()`: on Deno a child that
 * survives the signal is reported as killed by it, regardless of its exit status.
 */
export function signalChild(child: ChildProcess, signal: NodeJS.Signals): void {
  if (!isRunning({ child })) return;
  try {
    process.kill(child.pid!, signal);
  } catch (error) {
    // Deno may have reaped the child but not yet reported its exit.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export interface Serving extends Spawned {
  /** Sends requests to the service's socket. */
  fetch: Fetch;
  /** Sends a signal, SIGTERM by default, and waits for the exit. */
  stop(signal?: "SIGTERM" | "SIGINT" | "SIGHUP" | "SIGKILL"): Promise<CliExit>;
}

export interface ServeOptions extends CliOptions {
  /** Default: `<dir>/data/ground.sock`. */
  socketPath?: string;
  /** Size at which the tail is rotated and sealed. By default, the program's own. */
  rotateBytes?: number;
}

/** Starts `serve` for a deployment with minimal permissions, and resolves once it responds. */
export async function startServe(dir: string, options: ServeOptions = {}): Promise<Serving> {
  const serving = spawnServe(dir, options);
  await untilReady(serving);
  return serving;
}

/** Like `startServe()`, without waiting for a response. */
export function spawnServe(dir: string, options: ServeOptions = {}): Serving {
  const socketPath = options.socketPath ?? join(dir, "data", "ground.sock");
  const config = join(dir, "service.toml");
  const { rotateBytes, checkout = OWN_CHECKOUT } = options;
  // A worker needs to read its module.
  const folders = rotateBytes === undefined ? dir : `${dir},${join(checkout, "src")}`;
  const least: CliOptions = {
    permissions: [
      `--allow-read=${folders}`,
      `--allow-write=${dir}`,
      `--allow-net=unix:${socketPath}`,
      "--allow-sys",
    ],
    ...options,
  };
  const spawned = rotateBytes === undefined
    ? spawnCli(["--config", config, "serve"], least)
    : spawnScript(join(checkout, SERVE_ROTATING), [config, `${rotateBytes}`], least);
  return {
    ...spawned,
    fetch: unixFetch(socketPath),
    stop(signal = "SIGTERM") {
      signalChild(spawned.child, signal);
      return spawned.exited;
    },
  };
}

/** Waits until a service responds. @throws {Error} if the service has exited. */
export function untilReady({ fetch, exited }: Pick<Serving, "fetch" | "exited">): Promise<void> {
  return untilAnswered(exited, async () => {
    const response = await fetch("/v1/events?limit=1");
    await response.arrayBuffer();
  });
}

/** Repeats a request until it succeeds. @throws {Error} if the server has exited. */
export async function untilAnswered(
  exited: Promise<CliExit>,
  request: () => Promise<unknown>,
): Promise<void> {
  let exit: CliExit | undefined;
  exited.then((value) => exit = value);
  while (exit === undefined) {
    try {
      await request();
      return;
    } catch {
      await delay(POLL_MS);
    }
  }
  throw new Error(`the server exited instead of serving: ${describeExit(exit)}`);
}

/** Runs `use` with a temporary directory. Its path is short and has no symlinks. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "el-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs `use` with the directory of a new deployment. */
export function withInitialized<T>(use: (dir: string) => Promise<T>): Promise<T> {
  return withFolder(async (dir) => {
    await init(dir);
    return await use(dir);
  });
}
