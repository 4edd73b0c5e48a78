/**
 * Checks of what modules import: the layers of the program, cycles, source that only tests reach,
 * and imports from inside a package.
 */
import { dirname, join } from "node:path";

type Read = (path: string) => string;
/** The modules that each module imports. */
type Imports = ReadonlyMap<string, readonly string[]>;

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

/** Layers of `src/log/`, from bottom to top. A file may import only from its own and lower ones. */
const LOG_LAYERS = [
  ...["storage", "line", "read", "parquet", "wal", "index", "segment", "verify", "sealing"],
];

const IMPORT = /(?:from\s+|import\s+|import\()"(\.[^"]+)"/g;
const WORKER = /new URL\("(\.[^"]+)"/g;

/** Returns the faults of the modules at some paths, one line each. */
export function findWrongImports(modules: readonly string[], read: Read): string[] {
  const targetsOf = (path: string, pattern: RegExp) =>
    [...read(path).matchAll(pattern)].map((match) => join(dirname(path), match[1]!));
  const imports = new Map(modules.map((path) => [path, targetsOf(path, IMPORT)]));
  const started = modules.map((path) => [path, targetsOf(path, WORKER)] as const);
  const all = new Map(
    started.map(([path, workers]) => [path, [...imports.get(path)!, ...workers]]),
  );
  // A worker has its own module graph, so it may import what starts it.
  return [...findWrongLayers(all), ...findCycles(imports), ...findDead(all)];
}

function findWrongLayers(imports: Imports): string[] {
  return [...imports].flatMap(([path, targets]) =>
    targets.filter((target) => !mayImport(path.split("/"), target.split("/")))
      .map((target) => `${path}: imports ${target}, against the layer order`)
  );
}

/** Files directly in `src/` have no layer; those directly in `src/log/` are above its layers. */
function mayImport(path: readonly string[], target: readonly string[]): boolean {
  const [, from] = path;
  const [, to] = target;
  if (path[0] !== "src" || target[0] !== "src") return true;
  if (path.length === 2 || target.length === 2) return true;
  if (from !== to) return IMPORTED[from!]?.includes(to!) ?? false;
  return from !== "log" || logLayerOf(path) >= logLayerOf(target);
}

function logLayerOf([, , layer]: readonly string[]): number {
  const place = LOG_LAYERS.indexOf(layer!);
  return place < 0 ? LOG_LAYERS.length : place;
}

function findCycles(imports: Imports): string[] {
  const faults: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]) => {
    const cycle = way.slice(way.indexOf(path));
    if (way.includes(path)) faults.push(`${path}: import cycle: ${[...cycle, path].join(" -> ")}`);
    else if (!done.has(path)) {
      for (const target of imports.get(path) ?? []) visit(target, [...way, path]);
      done.add(path);
    }
  };
  for (const path of imports.keys()) visit(path, []);
  return faults;
}

/** Finds modules in `src/` that only tests reach. */
function findDead(imports: Imports): string[] {
  const paths = [...imports.keys()];
  const reached = new Set(paths.filter((path) => !/^(src|tests)\//.test(path)));
  // A set also yields what is added while it is iterated.
  for (const path of reached) {
    for (const target of imports.get(path) ?? []) reached.add(target);
  }
  return paths.filter((path) => path.startsWith("src/") && !reached.has(path))
    .map((path) => `${path}: only tests import it`);
}

/** Finds imports in `src/` that reach inside a package without a documented reason. */
export function findInnerImports(files: readonly string[], read: Read, list: string): string[] {
  return files.filter((path) => path.startsWith("src/")).flatMap((path) =>
    [...read(path).matchAll(/from\s+"((?:@[\w-]+\/)?[\w-]+\/src\/[^"]+)"/g)]
      .map((match) => match[1]!)
      .filter((specifier) => !list.includes(`\n| \`${specifier}\` `))
      .map((specifier) => `${path}: imports ${specifier} without a reason in docs/dependencies.md`)
  );
}
