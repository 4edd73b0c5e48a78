/**
 * Stages the executable's contents: the program as JavaScript, and only the scripts and the
 * `package.json` of its packages. Otherwise the compiler would embed entire packages, including
 * types, source maps and documentation.
 */
import { cpSync, existsSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { modulesIn, scriptOf, writeJavaScript, writeText } from "../build/javascript.ts";
import type { Program } from "../build/programs.ts";
import { type Build, writeRevision } from "../build/revision.ts";

/** Worker modules are recognized by their names. */
const WORKER = /_worker\.ts$/;
const SCRIPT = /\.[cm]?js$/;

/** Copies the program at `root` to `folder`. */
export function stage(root: string, folder: string, program: Program, build: Build): void {
  writeJavaScript(root, folder, program.sources);
  writeRevision(folder, build);
  const names = packagesOf(root, program);
  for (const name of names) copyScripts(packageFolder(root, name), packageFolder(folder, name));
  const dependencies = Object.fromEntries(names.map((name) => [name, "*"]));
  writeText(join(folder, "package.json"), JSON.stringify({ type: "module", dependencies }));
  writeText(join(folder, "deno.json"), JSON.stringify({ nodeModulesDir: "manual" }));
}

/** Returns the worker modules of the staged program, relative to its directory. */
export function workersOf(root: string, { sources }: Program): string[] {
  return sources.flatMap((path) => modulesIn(root, path)).filter((path) => WORKER.test(path))
    .map(scriptOf).sort();
}

/** Returns the licenses of all embedded packages. Every executable must include them. */
export function licencesOf(root: string, program: Program): string {
  return packagesOf(root, program).map((name) => {
    const folder = packageFolder(root, name);
    const file = ["LICENSE", "LICENSE.md"].find((file) => existsSync(join(folder, file)));
    if (file === undefined) throw new Error(`${folder}: LICENSE file not found`);
    const text = readFileSync(join(folder, file), "utf8").trim();
    return `${name}\n\n${text}\n`;
  }).join(`\n${"-".repeat(72)}\n\n`);
}

/** Returns the names of the packages that the program imports, and of those that they import. */
function packagesOf(root: string, { packages }: Program): string[] {
  const names = new Set(packages.flatMap((path) => dependenciesIn(join(root, path))));
  // A set also yields what is added while it is iterated.
  for (const name of names) {
    const manifest = join(packageFolder(root, name), "package.json");
    if (!existsSync(manifest)) throw new Error(`${manifest} not found; install the dependencies`);
    for (const more of dependenciesIn(manifest)) names.add(more);
  }
  return [...names].sort();
}

function dependenciesIn(manifest: string): string[] {
  return Object.keys(JSON.parse(readFileSync(manifest, "utf8")).dependencies ?? {});
}

function packageFolder(root: string, name: string): string {
  return join(root, "node_modules", name);
}

function copyScripts(from: string, to: string): void {
  const isWanted = (path: string) =>
    statSync(path).isDirectory() || SCRIPT.test(path) || basename(path) === "package.json";
  cpSync(from, to, { recursive: true, filter: isWanted });
}
