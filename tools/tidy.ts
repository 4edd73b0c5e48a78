/**
 * Style checks beyond the formatter and linter, run by `deno task check` and a test. Prints one
 * line per fault, and exits with status 1 if there are any.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findInnerImports, findWrongImports } from "./tidy/imports.ts";
import { findUnusedExports } from "./tidy/unused_exports.ts";

const FILE_LINES_MAX = 450;
const FOLDER_FILES_MAX = 25;
const SKIPPED = new Set([".git", "node_modules", "demo", "dist"]);

/** What no line may be like, in which files. */
const RULES: readonly [files: RegExp, line: RegExp, fault: string][] = [
  // A test title is one string, which the formatter does not break.
  [/\.ts$/, /^(?!import |\s*(await )?(\w+\.)?test\()(?!.*https?:).{101,}/u, "over 100 columns"],
  // Split so that this line does not match itself.
  [
    /./,
    /\b(TO[D]O|FIX[M]E|XX[X]|HA[C]K)\b|\.onl[y]\(|\btest\.ski[p]\(/,
    "unfinished or skipped work",
  ],
  // Examples are standalone.
  [
    /^(?!src\/runtime\/end_process\.ts$|examples\/).*\.ts$/,
    /\bprocess\.exit\(/,
    "ends the process; call endProcess() instead",
  ],
  // V8 aborts the process when it terminates a worker whose modules await.
  [/^src\/.*\.ts$/, /^(\w.*\b)?await /, "awaits at the top level of a module"],
  [
    /^src\/(?!runtime\/).*\/.*\.ts$/,
    /\b(Deno|Bun)\.|process\.versions|\bin globalThis\b/,
    "names a runtime, which is allowed only in src/runtime/",
  ],
];

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
  const lines = text.split("\n");
  const rules = RULES.filter(([files]) => files.test(path));
  const faults = lines.flatMap((line, index) =>
    rules.filter(([, pattern]) => pattern.test(line))
      .map(([, , fault]) => `${path}:${index + 1}: ${fault}`)
  );
  if (path.endsWith(".ts") && lines.length > FILE_LINES_MAX) {
    faults.push(`${path}: ${lines.length} lines, at most ${FILE_LINES_MAX}`);
  }
  return faults;
}

/** Finds directories in `src/` with too many files. */
function findFullFolders(files: readonly string[]): string[] {
  return [...Map.groupBy(files.filter((path) => path.startsWith("src/")), dirname)]
    .filter(([, { length }]) => length > FOLDER_FILES_MAX)
    .map(([folder, { length }]) => `${folder}: ${length} files, at most ${FOLDER_FILES_MAX}`);
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

/** Returns the faults in the source tree at `root`, one line each. */
export function findUntidy(root: string): string[] {
  const files = listFiles(root);
  const modules = files.filter((path) => path.endsWith(".ts"));
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const listed = read("docs/dependencies.md");
  // Examples have dependencies of their own.
  const packages = files.filter((path) => !path.startsWith("examples/"))
    .filter((path) => basename(path) === "package.json").map(dirname);
  return [
    ...files.flatMap((path) => checkText(path, read(path))),
    ...packages.flatMap((folder) => checkPackages(folder, read)),
    ...packages.flatMap((folder) =>
      findUnlisted(JSON.parse(read(join(folder, "package.json"))), listed)
    ),
    ...findFullFolders(files),
    ...findWrongImports(modules, read),
    ...findInnerImports(files, read, listed),
    ...findUnusedExports(modules, read),
  ];
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const faults = findUntidy(fileURLToPath(new URL("..", import.meta.url)));
  for (const fault of faults) process.stderr.write(fault + "\n");
  process.exitCode = faults.length > 0 ? 1 : 0;
}
