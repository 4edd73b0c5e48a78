/**
 * Runs the command line as a child process: under the runtime that runs the test, or as the
 * executable that is to be tested.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
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

const CLI_PATH = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const SOURCES = fileURLToPath(new URL("../../src", import.meta.url));
const SERVE_ROTATING = fileURLToPath(new URL("../serve_rotating.ts", import.meta.url));
/** A child that takes longer hangs: it is killed, which fails the test by its exit. */
const CHILD_TIMEOUT_MS = 120_000;
/** What is kept of each output: its end. */
const OUTPUT_CHARS_MAX = 16 * 1024 * 1024;
const READY_POLL_MS = 5;

export interface CliExit {
  /** Null when a signal ended it. */
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  cwd?: string;
  runtime?: RuntimeName;
  /** Permissions under Deno. */
  permissions?: string[];
  /** Of Deno, besides. */
  denoFlags?: string[];
  nodeFlags?: string[];
  /** Open files the child may have; the limit of the test if absent. */
  openFilesMax?: number;
  /** Path of a program to run in place of `cli.ts` under a runtime. */
  executable?: string;
  /** A program that runs the child, with its arguments: a tracer, another user. */
  wrapper?: string[];
  /** When a child that still runs is killed; null: never. CHILD_TIMEOUT_MS if absent. */
  timeoutMs?: number | null;
}

/** Runs the program to its end. */
export function runCli(args: string[], options: CliOptions = {}): Promise<CliExit> {
  return spawnCli(args, options).exited;
}

export interface Spawned {
  child: ChildProcess;
  /** Grows as the child writes. */
  output: { stdout: string; stderr: string };
  exited: Promise<CliExit>;
}

/** The words that run the program. */
export function cliCommand(args: string[]): string[] {
  const permissions = ["--allow-read", "--allow-write"];
  return [...programOf({ permissions }), ...args];
}

/** Starts the program. */
export function spawnCli(args: string[], options: CliOptions = {}): Spawned {
  return spawnCommand([...programOf(options), ...args], options);
}

/** Starts a script of this tree. */
export function spawnScript(script: string, args: string[], options: CliOptions = {}): Spawned {
  return spawnCommand([...runtimeOf(options), script, ...args], options);
}

/** The program under the runtime that is asked for; if none is, the executable to be tested. */
function programOf(options: CliOptions): string[] {
  const { runtime = THIS_RUNTIME } = options;
  const tested = runtime === THIS_RUNTIME ? TESTED_EXECUTABLE : undefined;
  const executable = options.executable ?? tested;
  return executable === undefined ? [...runtimeOf(options), CLI_PATH] : [executable];
}

function runtimeOf(
  { runtime = THIS_RUNTIME, permissions, denoFlags = [], nodeFlags = [] }: CliOptions,
): string[] {
  const granted = permissions ?? ["--allow-read", "--allow-write", "--allow-net"];
  return [executableOf(runtime)!, ...runtimeArgs(runtime, [...granted, ...denoFlags], nodeFlags)];
}

function spawnCommand(command: string[], options: CliOptions): Spawned {
  const { cwd = process.cwd(), timeoutMs = CHILD_TIMEOUT_MS } = options;
  const [program, ...programArgs] = [...options.wrapper ?? [], ...limited(command, options)];
  const child = spawn(program!, programArgs, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
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

/** How a child ended, in a line. */
export function describeExit({ code, signal, stderr }: CliExit): string {
  return `${signal ?? `exit ${code}`}: ${stderr.trim() || "nothing on standard error"}`;
}

/** Only a shell can set the limits of what it starts. */
function limited(command: string[], { openFilesMax }: CliOptions): string[] {
  if (openFilesMax === undefined) return command;
  return ["sh", "-c", `ulimit -n ${openFilesMax} && exec "$0" "$@"`, ...command];
}

export function isRunning({ child }: Pick<Spawned, "child">): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** Waits until the child has written `text` to standard error. */
export async function untilReported(spawned: Spawned, text: string): Promise<void> {
  await untilPrinted(spawned, ({ stderr }) => stderr.includes(text));
}

/** Waits until the child has written what `isThere` looks for. */
export async function untilPrinted(
  { child, output, exited }: Spawned,
  isThere: (output: Spawned["output"]) => boolean,
): Promise<void> {
  const gone = exited.then(() => "gone" as const);
  while (!isThere(output)) {
    const printed = new Promise<void>((resolve) => {
      for (const name of ["stdout", "stderr"] as const) child[name]!.once("data", () => resolve());
    });
    if (await Promise.race([printed, gone]) === "gone" && !isThere(output)) {
      throw new Error(`ended early: ${output.stdout}${output.stderr}`);
    }
  }
}

/**
 * Sends a signal to a child, unless it has ended. Not by `child.kill()`: on Deno a child that
 * outlives that is reported as ended by the signal, whatever it exits with.
 */
export function signalChild(child: ChildProcess, signal: NodeJS.Signals): void {
  if (isRunning({ child })) process.kill(child.pid!, signal);
}

export interface Serving extends Spawned {
  /** Sends requests to its socket. */
  fetch: Fetch;
  /** Sends a signal, SIGTERM by default, and waits for the end. */
  stop(signal?: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<CliExit>;
}

export interface ServeOptions extends CliOptions {
  /** Default: `<dir>/data/ground.sock`. */
  socketPath?: string;
  /** Size at which the tail is rotated and sealed; that of the program if absent. */
  rotateBytes?: number;
}

/** Sends a JSON body to a service. */
export function postJson({ fetch }: Serving, path: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
}

/** Starts `serve` for a deployment under the least permissions; returns once it answers. */
export async function startServe(dir: string, options: ServeOptions = {}): Promise<Serving> {
  const serving = spawnServe(dir, options);
  await untilReady(serving);
  return serving;
}

/** As `startServe()`, without waiting for an answer. */
export function spawnServe(dir: string, options: ServeOptions = {}): Serving {
  const socketPath = options.socketPath ?? join(dir, "data", "ground.sock");
  const config = join(dir, "service.toml");
  // A thread needs to read its module.
  const folders = options.rotateBytes === undefined ? dir : `${dir},${SOURCES}`;
  const least: CliOptions = {
    permissions: [
      `--allow-read=${folders}`,
      `--allow-write=${dir}`,
      `--allow-net=unix:${socketPath}`,
    ],
    ...options,
  };
  const spawned = options.rotateBytes === undefined
    ? spawnCli(["--config", config, "serve"], least)
    : spawnScript(SERVE_ROTATING, [config, `${options.rotateBytes}`], least);
  return {
    ...spawned,
    fetch: unixFetch(socketPath),
    stop(signal = "SIGTERM") {
      signalChild(spawned.child, signal);
      return spawned.exited;
    },
  };
}

/** Waits until a service answers. @throws {Error} it has ended instead. */
export async function untilReady(serving: Serving): Promise<void> {
  let exit: CliExit | undefined;
  serving.exited.then((value) => exit = value);
  while (exit === undefined) {
    try {
      const response = await serving.fetch("/v1/events?limit=1");
      await response.arrayBuffer();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
    }
  }
  throw new Error(`serve ended with ${describeExit(exit)}, instead of serving`);
}

/** Runs `use` with a fresh folder, then removes it. The path is short and without symlinks. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "el-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs `use` with the folder of a fresh deployment. */
export function withDeployment<T>(use: (dir: string) => Promise<T>): Promise<T> {
  return withFolder(async (dir) => {
    await init(dir, () => {});
    return await use(dir);
  });
}
