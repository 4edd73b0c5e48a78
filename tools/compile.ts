/**
 * `deno task compile [--program service|mirror] [--target NAME] [--output PATH]`: builds a
 * self-contained executable, `./service` or `dist/mirror`, for this machine. With a target
 * (`compile/targets.ts` lists them, `all` stands for all), it builds `dist/PROGRAM-NAME`. The
 * dependencies of tests, benchmarks and examples are not embedded.
 *
 * `deno compile` downloads the runtime that it embeds. If the download fails, set DENORT_BIN to the
 * path of a denort of the same Deno version, built for the target.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { FULL_VERSION } from "../src/version.ts";
import { type Program, programNamed, PROGRAMS } from "./build/programs.ts";
import { scriptOf } from "./build/javascript.ts";
import { revisionOf } from "./build/revision.ts";
import { licencesOf, stage, workersOf } from "./compile/stage.ts";
import { type Target, targetOf, targetsNamed } from "./compile/targets.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MIB = 1024 * 1024;
const TRIAL_TIMEOUT_MS = 60_000;
/** Documentation and examples that are distributed with an executable. */
const DOCUMENTS = ["README.md", "docs", "examples", "CHANGELOG.md", "SECURITY.md", "LICENSE"];

/** An executable to build. */
interface Job {
  program: Program;
  /** The target platform; undefined for the host. */
  target: Target | undefined;
  output: string;
}

/** @throws {Error} if an option is unknown or invalid. */
function jobsOf(
  values: { program: string; target?: string | undefined; output?: string | undefined },
): Job[] {
  const name = values.program;
  const program = programNamed(name);
  // The directory of the mirror's source has the name of its program.
  const native = name === "service" ? name : `dist/${name}`;
  const targets = values.target === undefined ? [undefined] : targetsNamed(values.target);
  if (values.output !== undefined && targets.length > 1) {
    throw new Error("--output cannot be used with --target all, which builds several executables");
  }
  return targets.map((target) => ({
    program,
    target,
    output: values.output !== undefined
      ? resolve(values.output)
      : join(ROOT, target === undefined ? native : `dist/${name}-${target.name}`),
  }));
}

/** Checks DENORT_BIN, since `deno compile` does not. @throws {Error} if its target differs. */
function refuseOtherRuntime({ target }: Job): void {
  const path = process.env.DENORT_BIN;
  if (path === undefined || target === undefined) return;
  const found = targetOf(path);
  if (found === target.name) return;
  throw new Error(`DENORT_BIN targets ${found ?? "an unknown platform"}, expected ${target.name}`);
}

/**
 * Compiles a staging directory. The executable may start no subprocesses, use no FFI, and read only
 * the environment variables that it needs. Directories and the socket are configured at run time,
 * so paths cannot be restricted here.
 *
 * The code cache is disabled. It would be loaded from a predictable path in the system's temporary
 * directory, where any user could plant a file.
 * @throws {Error} if compilation fails.
 */
function compile(job: Job, folder: string): void {
  refuseOtherRuntime(job);
  const { output, program, target } = job;
  mkdirSync(dirname(output), { recursive: true });
  const args = [
    ...["compile", "--quiet", "--no-check", "--no-lock", "--no-code-cache", "--no-prompt"],
    ...["--allow-read", "--allow-write", "--allow-sys", "--allow-net"],
    `--allow-env=${program.variables.join()}`,
    // Garbage is collected earlier, which saves 100 MiB under load.
    "--v8-flags=--heap-growing-percent=50,--max-semi-space-size=8",
    ...target === undefined ? [] : ["--target", target.triple],
    // The compiler cannot discover these through imports.
    ...workersOf(ROOT, program).flatMap((path) => ["--include", path]),
    ...["--output", output, scriptOf(program.entry)],
  ];
  const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
  if (status === 0) return;
  throw new Error(
    `${relative(ROOT, output)} was not built; if denort could not be downloaded, set DENORT_BIN ` +
      `to the path of a denort of the same Deno version`,
  );
}

/**
 * Runs the executable, because compilation succeeds even if the wrong runtime was embedded, and
 * removes it if it does not print its version. @throws {Error} with the reason.
 */
function tryOut({ output }: Job, revision: string): void {
  const expected = revision === "" ? FULL_VERSION : `${FULL_VERSION}+${revision}`;
  const { status, error, stdout, stderr } = spawnSync(output, ["--version"], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
    timeout: TRIAL_TIMEOUT_MS,
  });
  if (status === 0 && stdout === `${expected}\n`) return;
  rmSync(output);
  const [printed] = (error?.message ?? `${stdout}${stderr}`).trim().split("\n");
  const hint = process.env.DENORT_BIN === undefined
    ? ""
    : `; DENORT_BIN must be a denort of Deno ${process.versions.deno}`;
  throw new Error(`${output} --version does not print ${expected}: ${printed}${hint}`);
}

function run(jobs: Job[]): void {
  const { program } = jobs[0]!;
  const licences = program === PROGRAMS.service ? "dist/LICENSES.txt" : "dist/LICENSES-mirror.txt";
  const folder = mkdtempSync(join(tmpdir(), "compile-"));
  try {
    const revision = revisionOf(ROOT);
    const isTestBuild = process.env.DENORT_BIN !== undefined;
    stage(ROOT, folder, program, { revision, isTestBuild });
    for (const job of jobs) {
      const { target, output } = job;
      compile(job, folder);
      const isNative = target === undefined || target.name === targetOf(process.execPath);
      if (isNative) tryOut(job, revision);
      const mib = (statSync(output).size / MIB).toFixed(2);
      const untried = isNative ? "" : " (not run: built for a different platform)";
      process.stdout.write(`${relative(ROOT, output)}: ${mib} MiB${untried}\n`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  for (const path of DOCUMENTS) {
    cpSync(join(ROOT, path), join(ROOT, "dist/documents", path), { recursive: true });
  }
  writeFileSync(join(ROOT, licences), licencesOf(ROOT, program));
}

try {
  const { values } = parseArgs({
    options: {
      program: { type: "string", default: "service" },
      target: { type: "string" },
      output: { type: "string" },
    },
  });
  run(jobsOf(values));
} catch (error) {
  process.stderr.write(`compile: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
