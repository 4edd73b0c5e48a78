/** One run of the program as a child process, under a runtime of choice. */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { executableOf, runtimeArgs, type RuntimeName } from "../support/runtimes.ts";

/** The folder of this tree. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));
const CLI_PATH = fileURLToPath(new URL("../../cli.ts", import.meta.url));
/** `serve` that seals its tail while it is small: takes the configuration and a size. */
export const SERVE_ROTATING: string = fileURLToPath(
  new URL("../serve_rotating.ts", import.meta.url),
);
/** What is kept of an output: its end. */
const OUTPUT_CHARS_MAX = 16 * 1024;

/** How a run ended. */
export interface ProcessExit {
  /** Null when a signal ended it. */
  code: number | null;
  signal: string | null;
  /** The end of it. */
  stdout: string;
  /** The end of it. */
  stderr: string;
}

export interface ProcessOptions {
  runtime: RuntimeName;
  /** Under a runtime that asks for them. */
  permissions: string[];
  /** What is run; the program itself if absent. */
  script?: string;
}

export class ServiceProcess {
  readonly #child: ChildProcess;
  /** Resolves at its end. */
  readonly exited: Promise<ProcessExit>;
  #exit: ProcessExit | null = null;

  constructor(args: string[], { runtime, permissions, script = CLI_PATH }: ProcessOptions) {
    const command = [...runtimeArgs(runtime, permissions), script, ...args];
    const child = spawn(executableOf(runtime)!, command, { stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] = (output[name] + text).slice(-OUTPUT_CHARS_MAX);
      });
    }
    this.#child = child;
    this.exited = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        this.#exit = { code, signal, ...output };
        resolve(this.#exit);
      });
    });
    // Whoever waits for the end sees it; a failed start shows there too.
    this.exited.catch(() => {});
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** How it ended; null while it runs. */
  get exit(): ProcessExit | null {
    return this.#exit;
  }

  /**
   * Sends a signal; nothing happens to a process that has ended. Not by `child.kill()`: one runtime
   * would report that signal instead of the exit code.
   */
  signal(signal: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    const { exitCode, signalCode, pid } = this.#child;
    if (exitCode === null && signalCode === null && pid !== undefined) process.kill(pid, signal);
  }
}

/** How a run ended, in a line. */
export function describeExit({ code, signal, stderr }: ProcessExit): string {
  return `${signal ?? `exit ${code}`}: ${stderr.trim() || "nothing on standard error"}`;
}
