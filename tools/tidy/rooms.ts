/**
 * Checks of the source tree's structure: ordered rooms of the log, no overfull folder, no import
 * cycle, no import from inside a package.
 */
import { dirname, join } from "node:path";

type Read = (path: string) => string;

/** Rooms of `src/log/` from the bottom up: a file imports from its own room and lower ones. */
export const ROOMS = [
  ...["storage", "line", "read", "parquet", "wal", "segment", "verify", "sealing"],
];
const FOLDER_FILES_MAX = 25;

/** Modules of the tree that a text imports, or starts as a worker. */
export function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:from\s+|import\s+|import\(|new URL\()"(\.[^"]+)"/g)]
    .map((match) => match[1]!);
}

function targetsOf(path: string, read: Read): string[] {
  return importsOf(read(path)).map((specifier) => join(dirname(path), specifier));
}

/** Upward imports between rooms. Files directly in `src/log/` are above all rooms. */
export function findWrongRooms(files: readonly string[], read: Read): string[] {
  const roomOf = (path: string) => {
    const [src, log, room, ...rest] = path.split("/");
    if (src !== "src" || log !== "log") return null;
    return rest.length === 0 ? ROOMS.length : ROOMS.indexOf(room!);
  };
  return files.flatMap((path) => {
    const room = roomOf(path);
    if (room === null) return [];
    if (room < 0) return [`${path}: its folder is not a room listed in tools/tidy/rooms.ts`];
    return targetsOf(path, read)
      .filter((target) => (roomOf(target) ?? 0) > room)
      .map((target) => `${path}: imports ${target}, against the order of rooms`);
  });
}

/** Folders of `src/` with too many files. */
export function findFullFolders(files: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of files.filter((path) => path.startsWith("src/"))) {
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => `${folder}: ${count} files, at most ${FOLDER_FILES_MAX}`);
}

/** Import cycles in `src/`, each starting at its alphabetically first file. */
export function findCycles(files: readonly string[], read: Read): string[] {
  const sources = files.filter((path) => path.startsWith("src/") && path.endsWith(".ts"));
  const faults = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]) => {
    const at = way.indexOf(path);
    if (at >= 0) {
      const circle = way.slice(at);
      const first = circle.indexOf([...circle].sort()[0]!);
      const turned = [...circle.slice(first), ...circle.slice(0, first)];
      faults.add(`${turned[0]}: imports itself: ${[...turned, turned[0]].join(" -> ")}`);
    }
    if (at >= 0 || done.has(path) || !sources.includes(path)) return;
    // A module that a URL names is a worker, with its own module graph.
    const text = read(path).replaceAll(/new URL\("[^"]*"/g, "");
    for (const specifier of importsOf(text)) {
      visit(join(dirname(path), specifier), [...way, path]);
    }
    done.add(path);
  };
  for (const path of sources) visit(path, []);
  return [...faults];
}

/** Imports in `src/` from inside a package without a reason in the list of dependencies. */
export function findInnerImports(files: readonly string[], read: Read, list: string): string[] {
  return files.filter((path) => path.startsWith("src/")).flatMap((path) =>
    [...read(path).matchAll(/from\s+"((?:@[\w-]+\/)?[\w-]+\/src\/[^"]+)"/g)]
      .map((match) => match[1]!)
      .filter((specifier) => !list.includes(`\n| \`${specifier}\` `))
      .map((specifier) => `${path}: imports ${specifier} without a reason in docs/dependencies.md`)
  );
}
