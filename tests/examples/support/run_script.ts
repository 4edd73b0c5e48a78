/** Runs an example as a child process, under the runtime that runs the test. */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runtimeArgs, THIS_RUNTIME } from "../../../tools/support/runtimes.ts";

/** A child that takes longer hangs. */
const TIMEOUT_MS = 30_000;

export interface ScriptRun {
  child: ChildProcess;
  /** What it has printed so far. */
  output: { stdout: string; stderr: string };
  /** Exit code; null when a signal ended it. */
  exited: Promise<number | null>;
}

/** Starts `examples/<name>.ts`. @param permissions Under Deno. */
export function startExample(
  name: string,
  args: string[],
  permissions = ["--allow-all"],
): ScriptRun {
  const script = fileURLToPath(new URL(`../../../examples/${name}.ts`, import.meta.url));
  const command = [...runtimeArgs(THIS_RUNTIME, permissions), script, ...args];
  const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => output[name] += text);
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).finally(() => clearTimeout(timer));
  return { child, output, exited };
}

/** Runs it to its end. */
export async function runExample(name: string, args: string[]) {
  const { output, exited } = startExample(name, args);
  return { code: await exited, ...output };
}

/** Waits until the example has printed what `isThere` looks for. */
export async function untilPrinted(
  { child, output, exited }: ScriptRun,
  isThere: (output: ScriptRun["output"]) => boolean,
): Promise<void> {
  const gone = exited.then(() => "gone" as const);
  while (!isThere(output)) {
    const printed = new Promise<void>((resolve) => {
      for (const name of ["stdout", "stderr"] as const) child[name]!.once("data", () => resolve());
    });
    if (await Promise.race([printed, gone]) === "gone" && !isThere(output)) {
      throw new Error(`the example ended early: ${output.stdout}${output.stderr}`);
    }
  }
}
