/**
 * Stages the executable's contents: the program as JavaScript, and only the JavaScript files from
 * its packages. Otherwise the compiler would embed entire packages, including types, source maps
 * and documentation.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { scriptOf, writeJavaScript, writeText } from "../build/javascript.ts";
import { revisionModule } from "../build/revision.ts";

/** Worker modules are recognized by their names. */
const WORKER = /_worker\.ts$/;
const VENDOR = "vendor";

/** A package that the program depends on. */
interface Package {
  name: string;
  folder: string;
  /** The package's main module, relative to `folder`. */
  main: string;
}

export interface Build {
  /** The revision that `--version` appends to the version. */
  revision: string;
  /** Whether it may run on a runtime that is too old. */
  isTestBuild: boolean;
}

/** Copies the program at `root` to `folder`. */
export function stage(root: string, folder: string, { revision, isTestBuild }: Build): void {
  writeJavaScript(root, folder, ["cli.ts", "src"]);
  const { path, text } = revisionModule(revision, isTestBuild);
  writeText(join(folder, path), text);
  // Packages may import built-in modules without the `node:` prefix.
  const imports = Object.fromEntries(builtinModules.map((name) => [name, `node:${name}`]));
  for (const { name, folder: from, main } of packagesOf(root)) {
    const to = join(VENDOR, name);
    copyJavaScript(from, join(folder, to));
    imports[name] = `./${join(to, main)}`;
    imports[`${name}/`] = `./${to}/`;
  }
  writeText(join(folder, "deno.json"), JSON.stringify({ imports, nodeModulesDir: "none" }));
}

/** Returns the worker modules of the staged program, relative to its directory. */
export function workersOf(root: string): string[] {
  return filesIn(join(root, "src"))
    .filter((path) => WORKER.test(path))
    .map((path) => scriptOf(relative(root, path))).sort();
}

/** Returns the licenses of all embedded packages. Every executable must include them. */
export function licencesOf(root: string): string {
  return packagesOf(root).map(({ name, folder }) => {
    const file = ["LICENSE", "LICENSE.md"].find((file) => existsSync(join(folder, file)));
    if (file === undefined) throw new Error(`${folder}: LICENSE file not found`);
    const text = readFileSync(join(folder, file), "utf8").trim();
    return `${name}\n\n${text}\n`;
  }).join(`\n${"-".repeat(72)}\n\n`);
}

/** Returns the program's runtime dependencies. */
function packagesOf(root: string): Package[] {
  return Object.keys(readJson(join(root, "package.json")).dependencies).map((name) => {
    const main = fileURLToPath(import.meta.resolve(name));
    const folder = packageFolder(main, name);
    return { name, folder, main: relative(folder, main) };
  });
}

function packageFolder(module: string, name: string): string {
  for (let folder = dirname(module); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest) && readJson(manifest).name === name) return folder;
  }
  throw new Error(`${module}: package.json of ${name} not found; install the dependencies`);
}

function copyJavaScript(from: string, to: string): void {
  for (const path of filesIn(from)) {
    if (!path.endsWith(".js")) continue;
    const copy = join(to, relative(from, path));
    mkdirSync(dirname(copy), { recursive: true });
    cpSync(path, copy);
  }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesIn(path) : [path];
  });
}

function readJson(path: string) {
  return JSON.parse(readFileSync(path, "utf8"));
}
