/**
 * Compiles `cli.ts` to one executable, `./service`: run it with `deno task compile`. What only
 * tests, benchmarks and examples need is not embedded, so the tree is compiled from a copy that
 * depends on the runtime dependencies alone.
 *
 * `deno compile` downloads the runtime that it embeds; where it cannot, DENORT_BIN names one.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/**
 * No subprocess, no FFI, no environment. A socket cannot be named before its configuration is read.
 */
const PERMISSIONS = ["--allow-read", "--allow-write", "--allow-net"];

/** Modules that are started as threads, which no import tells. */
const THREADS = ["src/log/hash_worker.ts"];

/** Copies what the executable is made of. */
function stage(folder: string): void {
  for (const path of ["cli.ts", "src"]) {
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
  const { version, compilerOptions, imports } = readJson("deno.json");
  const names = Object.keys(readJson("package.json").dependencies);
  const needed = Object.fromEntries(names.map((name) => [name, imports[name]]));
  const config = { version, compilerOptions, imports: needed, nodeModulesDir: "none" };
  writeFileSync(join(folder, "deno.json"), JSON.stringify(config));
}

function readJson(path: string) {
  return JSON.parse(readFileSync(join(ROOT, path), "utf8"));
}

/** @returns the exit status of the compiler. */
function compile(folder: string): number {
  const threads = THREADS.flatMap((path) => ["--include", path]);
  const args = ["compile", "--quiet", "--no-check", "--no-lock", ...threads, ...PERMISSIONS];
  const output = ["--output", join(ROOT, "service"), "cli.ts"];
  const { status } = spawnSync(process.execPath, [...args, ...output], {
    cwd: folder,
    stdio: "inherit",
  });
  return status ?? 1;
}

const folder = mkdtempSync(join(tmpdir(), "compile-"));
try {
  stage(folder);
  process.exitCode = compile(folder);
} finally {
  rmSync(folder, { recursive: true });
}
