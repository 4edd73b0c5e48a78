/**
 * Checks of the source tree's structure: the layers of the log, directories with too many files,
 * import cycles, and imports from inside a package.
 */
import { dirname, join } from "node:path";

type Read = (path: string) => string;

/** Layers of `src/log/`, from bottom to top. A file may import only from its own and lower ones. */
export const LOG_LAYERS = [
  ...["storage", "line", "read", "parquet", "wal", "index", "segment", "verify", "sealing"],
];
const FOLDER_FILES_MAX = 25;

/** Returns the relative specifiers of modules that source code imports, or starts as workers. */
export function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:from\s+|import\s+|import\(|new URL\()"(\.[^"]+)"/g)]
    .map((match) => match[1]!);
}

function targetsOf(path: string, read: Read): string[] {
  return importsOf(read(path)).map((specifier) => join(dirname(path), specifier));
}

/** Finds upward imports between layers. Files directly in `src/log/` are above all layers. */
export function findWrongLogLayers(files: readonly string[], read: Read): string[] {
  const layerOf = (path: string) => {
    const [src, log, layer, ...rest] = path.split("/");
    if (src !== "src" || log !== "log") return null;
    return rest.length === 0 ? LOG_LAYERS.length : LOG_LAYERS.indexOf(layer!);
  };
  return files.flatMap((path) => {
    const layer = layerOf(path);
    if (layer === null) return [];
    if (layer < 0) return [`${path}: its directory is not a layer listed in tools/tidy/layers.ts`];
    return targetsOf(path, read)
      .filter((target) => (layerOf(target) ?? 0) > layer)
      .map((target) => `${path}: imports ${target}, against the layer order`);
  });
}

/** Finds directories in `src/` with too many files. */
export function findFullFolders(files: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of files.filter((path) => path.startsWith("src/"))) {
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => `${folder}: ${count} files, at most ${FOLDER_FILES_MAX}`);
}

/** Finds import cycles. Each starts at its alphabetically first file. */
export function findCycles(files: readonly string[], read: Read): string[] {
  const sources = files.filter((path) => path.endsWith(".ts"));
  const faults = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]) => {
    const at = way.indexOf(path);
    if (at >= 0) {
      const circle = way.slice(at);
      const first = circle.indexOf([...circle].sort()[0]!);
      const turned = [...circle.slice(first), ...circle.slice(0, first)];
      faults.add(`${turned[0]}: import cycle: ${[...turned, turned[0]].join(" -> ")}`);
    }
    if (at >= 0 || done.has(path) || !sources.includes(path)) return;
    // A module referenced by URL is a worker, with its own module graph.
    const text = read(path).replaceAll(/new URL\("[^"]*"/g, "");
    for (const specifier of importsOf(text)) {
      visit(join(dirname(path), specifier), [...way, path]);
    }
    done.add(path);
  };
  for (const path of sources) visit(path, []);
  return [...faults];
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
