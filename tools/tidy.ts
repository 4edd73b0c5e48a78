/**
 * Style checks beyond the formatter and linter, run by `deno task check` and a test. Prints one
 * line per fault, and exits with status 1 if there are any.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  findCycles,
  findFullFolders,
  findInnerImports,
  findWrongLogLayers,
  importsOf,
} from "./tidy/layers.ts";
import { findUnusedExports } from "./tidy/unused_exports.ts";

const LINE_WIDTH = 100;
const FILE_LINES_MAX = 450;
const SKIPPED = new Set([".git", "node_modules", "demo", "dist"]);

/** The other directories that each directory in `src/` may import from. */
const IMPORTED: Record<string, string[]> = {
  event: [],
  log: ["event", "threads"],
  service: ["event", "log", "threads"],
  api: ["event", "log", "service", "http"],
  commands: ["event", "log", "service", "api", "client", "http", "runtime"],
  client: ["event"],
  http: [],
  runtime: [],
  threads: [],
};

/** Files that may end the process through the runtime. Examples are standalone. */
const ENDING = /^(src\/runtime\/end_process\.ts$|examples\/)/;

/** Returns the paths of all text files in the project, relative to `root`. */
function listFiles(root: string, folder = ""): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (SKIPPED.has(entry.name)) return [];
    if (entry.isDirectory()) return listFiles(root, path);
    return /\.(ts|md|json|yaml|sql)$/.test(entry.name) &&
        !/(package-lock\.json|deno\.lock)$/.test(path)
      ? [path]
      : [];
  });
}

function checkText(path: string, text: string): string[] {
  const faults: string[] = [];
  const lines = text.split("\n");
  if (path.endsWith(".ts") && lines.length > FILE_LINES_MAX) {
    faults.push(`${path}: ${lines.length} lines, at most ${FILE_LINES_MAX}`);
  }
  lines.forEach((line, index) => {
    const at = `${path}:${index + 1}`;
    const width = [...line].length;
    // A test title is one string, which the formatter does not break.
    const mayBeLong = /https?:|^import |^\s*(await )?(\w+\.)?test\($|^\s*(await )?(\w+\.)?test\("/;
    if (path.endsWith(".ts") && width > LINE_WIDTH && !mayBeLong.test(line)) {
      faults.push(`${at}: ${width} columns, at most ${LINE_WIDTH}`);
    }
    // Split so that this line does not match itself.
    if (/\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b|\.only\(|\btest\.ski[p]\(/.test(line)) {
      faults.push(`${at}: unfinished or skipped work`);
    }
    if (path.endsWith(".ts") && !ENDING.test(path) && /\bprocess\.exit\(/.test(line)) {
      faults.push(`${at}: ends the process; call endProcess() instead`);
    }
    // V8 aborts the process when it terminates a worker whose modules await.
    if (path.startsWith("src/") && path.endsWith(".ts") && /^(\w.*\b)?await /.test(line)) {
      faults.push(`${at}: awaits at the top level of a module`);
    }
  });
  return faults;
}

function checkSource(path: string, text: string): string[] {
  const faults: string[] = [];
  const [, folder, ...rest] = path.split("/");
  if (folder === undefined || rest.length === 0) return faults;
  if (folder !== "runtime" && /\b(Deno|Bun)\.|process\.versions|\bin globalThis\b/.test(text)) {
    faults.push(`${path}: names a runtime, which is allowed only in src/runtime/`);
  }
  const allowed = [folder, ...IMPORTED[folder] ?? []];
  for (const specifier of importsOf(text)) {
    const target = join(path, "..", specifier).split("/");
    if (target[0] === "src" && target.length > 2 && !allowed.includes(target[1]!)) {
      faults.push(`${path}: imports ${target.slice(1).join("/")}, against the layer order`);
    }
  }
  return faults;
}

interface Packages {
  version?: string;
  license?: string;
  imports?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

/** Checks that a directory's deno.json and package.json specify the same, exact versions. */
function checkPackages(folder: string, read: (path: string) => string): string[] {
  const [deno, node] = ["deno.json", "package.json"].map((name): Packages =>
    JSON.parse(read(join(folder, name)))
  ) as [Packages, Packages];
  const faults: string[] = [];
  for (const key of ["version", "license"] as const) {
    if (deno[key] !== node[key]) faults.push(`deno.json and package.json differ in their ${key}`);
  }
  const ofNode = { ...node.dependencies, ...node.devDependencies };
  const ofDeno = Object.fromEntries(
    Object.entries(deno.imports ?? {}).map(([name, specifier]) => [
      name,
      specifier.replace(`npm:${name}@`, ""),
    ]),
  );
  for (const name of new Set([...Object.keys(ofNode), ...Object.keys(ofDeno)])) {
    if (ofNode[name] !== ofDeno[name]) {
      faults.push(`${name}: deno.json has ${ofDeno[name]}, package.json has ${ofNode[name]}`);
    }
    if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(ofNode[name] ?? "")) {
      faults.push(`${name}: ${ofNode[name]} is not an exact version`);
    }
  }
  return faults;
}

/** Finds packages that are missing from the documented dependencies. */
function findUnlisted({ dependencies, devDependencies }: Packages, list: string): string[] {
  return Object.keys({ ...dependencies, ...devDependencies })
    .filter((name) => !list.includes(`\n| \`${name}\` `))
    .map((name) => `docs/dependencies.md: has no entry for ${name}`);
}

/** Finds source files that are unreachable from the entry points. */
function findDead(files: string[], read: (path: string) => string): string[] {
  const entries = files.filter((path) => !path.startsWith("src/") && path.endsWith(".ts"));
  const reached = new Set<string>();
  const visit = (path: string) => {
    if (reached.has(path) || !files.includes(path)) return;
    reached.add(path);
    for (const specifier of importsOf(read(path))) visit(join(path, "..", specifier));
  };
  for (const path of entries.filter((path) => !path.startsWith("tests/"))) visit(path);
  return files
    .filter((path) => path.startsWith("src/") && path.endsWith(".ts") && !reached.has(path))
    .map((path) => `${path}: only tests import it`);
}

/** Returns the faults in the source tree at `root`, one line each. */
export function findUntidy(root: string): string[] {
  const files = listFiles(root);
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  // Examples have dependencies of their own.
  const packages = files.filter((path) => !path.startsWith("examples/"))
    .filter((path) => basename(path) === "package.json").map(dirname);
  return [
    ...files.flatMap((path) => checkText(path, read(path))),
    ...files.filter((path) => path.startsWith("src/")).flatMap((p) => checkSource(p, read(p))),
    ...packages.flatMap((folder) => checkPackages(folder, read)),
    ...packages.flatMap((folder) =>
      findUnlisted(JSON.parse(read(join(folder, "package.json"))), read("docs/dependencies.md"))
    ),
    ...findDead(files, read),
    ...findWrongLogLayers(files, read),
    ...findFullFolders(files),
    ...findCycles(files, read),
    ...findInnerImports(files, read, read("docs/dependencies.md")),
    ...findUnusedExports(files.filter((path) => path.endsWith(".ts")), read),
  ];
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const faults = findUntidy(fileURLToPath(new URL("..", import.meta.url)));
  for (const fault of faults) process.stderr.write(fault + "\n");
  process.exitCode = faults.length > 0 ? 1 : 0;
}
